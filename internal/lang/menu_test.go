package lang

import (
	"fmt"
	"testing"
)

// Of a menu, the key is found that fits a goal, or that leads to a person.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		language, menu, goal, want string
	}{
		{"en", "for sales press one for reservations press 2", "choose reservations", "2 true"},
		{"en", "press 1 for sales, press 2 for billing, press 0 for the operator", "the billing department", "2 true"},
		{"en", "press 1 for sales, press 2 for billing, press 0 for the operator", "", "0 false"},
		{"en", "to book a table press three to speak to somebody press nine", "talk about an invoice", "9 false"},
		{"en", "please leave a message", "sales", "none"},
		{"en", "for sales press one for reservations press two", "repairs", "none"},
		{"de", "Für den Vertrieb drücken Sie die Eins. Für alle anderen Anliegen drücken Sie die Null.", "Rechnung", "0 false"},
		{"de", "Drücken Sie die 1 für Termine, drücken Sie die 2 für Rechnungen.", "einen Termin vereinbaren", "1 true"},
		{"es", "Para ventas, pulse uno. Para hablar con un agente, pulse cero.", "", "0 false"},
		{"fr", "Pour une réservation, tapez 1. Pour un conseiller, tapez 2.", "réserver une table", "1 true"},
		{"it", "Per prenotazioni prema uno, per parlare con un operatore prema l'otto.", "", "8 false"},
		{"pt", "Para marcações prima um, para falar com um assistente prima nove.", "marcação de consulta", "1 true"},
		{"zh", "查询余额请按1，密码重置请按2，人工服务请按0。", "重置我的密码", "2 true"},
		{"zh", "查询余额请按1，密码重置请按2，人工服务请按0。", "预约", "0 false"},
		{"pl", "Aby zarezerwować stolik, naciśnij 1. Aby połączyć się z konsultantem, naciśnij zero.", "rezerwacja", "0 false"},
		{"ru", "Для записи к врачу нажмите 1. Чтобы поговорить с оператором, нажмите 0.", "", "0 false"},
		{"sv", "För bokningar, tryck 1. För övriga frågor, tryck 9.", "en bokning", "1 true"},
		{"ar", "للمبيعات اضغط 1، للتحدث مع موظف اضغط 0.", "", "0 false"},
		{"nl", "Voor verkoop, toets 1. Voor een medewerker, toets 4.", "", "4 false"},
	} {
		o, fits, ok := Choose(Options(c.menu, c.language), c.goal, c.language)
		got := "none"
		if ok {
			got = fmt.Sprintf("%c %v", o.Key, fits)
		}
		if got != c.want {
			t.Errorf("%s %q for %q: %s, want %s (%v)", c.language, c.menu, c.goal, got, c.want, Options(c.menu, c.language))
		}
	}
}
