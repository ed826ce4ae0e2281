package knowledge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/parley"
)

// spokenTests are handbooks, and questions with the beginning of the passage that answers each.
var spokenTests = map[string]struct {
	handbook  string
	questions map[string]string
}{
	"English": {`# Hours
The shop is open from Monday to Saturday, nine to six.

# Delivery
We deliver within two days. Shipping is free from 50 euros on.

# Returns
You can send goods back within 30 days. We refund the price within a week.

# Payment
We accept cards, bank transfers and PayPal.

# Bookings
Tables are reserved by telephone. A booking can be cancelled until noon.

# Dogs
Dogs are welcome on the terrace.`,
		map[string]string{"When are you open?": "The shop", "How long does delivery take?": "We deliver", "Can I return goods?": "You can",
			"How can I pay by card?": "We accept", "How do I cancel my booking?": "Tables", "Are dogs allowed?": "Dogs",
			"What does shipping cost?": "We deliver", "When will I get my refund?": "You can"}},
	"Dutch": {`# Tijden
De winkel is geopend van maandag tot en met zaterdag, van negen tot zes uur.

# Bezorging
Wij leveren binnen twee werkdagen. Verzending is gratis vanaf 50 euro, daaronder rekenen wij vijf euro.

# Ruilen
Artikelen kunt u binnen dertig dagen terugsturen. Het aankoopbedrag wordt binnen een week terugbetaald.

# Betaling
U betaalt met iDEAL, creditcard of PayPal. De betaling wordt meteen verwerkt.

# Tafels
Tafels worden telefonisch gereserveerd. Een reservering kan tot twaalf uur worden geannuleerd.

# Dieren
Honden zijn welkom op het terras.

# Garantie
Op alle fietsen zit twee jaar garantie. Reparaties worden in onze werkplaats uitgevoerd.

# Parkeren
Achter het huis zijn twintig parkeerplaatsen.`,
		map[string]string{"Wanneer zijn jullie open?": "De winkel", "Wat zijn de openingstijden?": "De winkel",
			"Hoe snel wordt mijn bestelling geleverd?": "Wij leveren", "Wat zijn de verzendkosten?": "Wij leveren",
			"Kan ik iets terugsturen?": "Artikelen", "Hoe kan ik betalen?": "U betaalt",
			"Hoe annuleer ik mijn reservering?": "Tafels", "Kan ik een tafel reserveren?": "Tafels",
			"Mag mijn hond mee?":                  "Honden",
			"Kunnen jullie mijn fiets repareren?": "Op alle", "Waar kan ik parkeren?": "Achter"}},
	"French": {`# Horaires
Le magasin est ouvert du lundi au samedi, de neuf heures à dix-huit heures.

# Livraison
Nous livrons sous deux jours ouvrés. Les frais d'envoi sont offerts à partir de 50 euros.

# Retours
Vous pouvez renvoyer les articles dans les trente jours. Le prix est remboursé sous une semaine.

# Paiement
Nous acceptons les cartes bancaires, les virements et PayPal.

# Tables
Les tables se réservent par téléphone. Une réservation peut être annulée jusqu'à midi.

# Animaux
Les chiens sont les bienvenus sur la terrasse.

# Garantie
Tous nos vélos sont garantis deux ans. Les réparations se font dans notre atelier.

# Stationnement
Vingt places se trouvent derrière la maison, à l'entrée nord.`,
		map[string]string{"Quelles sont vos heures d'ouverture ?": "Le magasin", "Quand ouvrez-vous ?": "Le magasin",
			"En combien de temps livrez-vous ?": "Nous livrons", "Combien coûte l'envoi ?": "Nous livrons",
			"Comment obtenir un remboursement ?": "Vous pouvez", "Comment puis-je payer par carte ?": "Nous acceptons",
			"Comment annuler ma réservation ?": "Les tables", "Puis-je réserver une table ?": "Les tables",
			"Mon chien peut-il venir ?":      "Les chiens",
			"Pouvez-vous réparer mon vélo ?": "Tous nos", "Où est l'entrée ?": "Vingt"}},
	"Polish": {`# Godziny
Sklep jest otwarty od poniedziałku do soboty, w godzinach od 9 do 18.

# Wysyłka
Zamówienia dostarczamy w ciągu dwóch dni roboczych. Koszt przesyłki wynosi 15 zł, od 200 zł dostawa jest bezpłatna.

# Zwroty
Towar można zwrócić w ciągu trzydziestu dni. Pieniądze oddajemy w ciągu tygodnia.

# Płatność
Przyjmujemy karty płatnicze, przelewy i BLIK.

# Stoliki
Stoliki rezerwuje się telefonicznie. Rezerwację można anulować do południa.

# Zwierzęta
Psy są mile widziane na tarasie.

# Gwarancja
Na wszystkie rowery udzielamy dwuletniej gwarancji. Naprawy wykonujemy we własnym warsztacie.

# Parking
Za domem znajduje się dwadzieścia miejsc parkingowych.`,
		map[string]string{"Kiedy sklep jest otwarty?": "Sklep", "O której godzinie otwieracie?": "Sklep", "Ile trwa dostawa?": "Zamówienia",
			"Ile kosztuje przesyłka?": "Zamówienia", "Czy mogę zrobić zwrot towaru?": "Towar", "Kiedy dostanę zwrot pieniędzy?": "Towar",
			"Czy można płacić kartą?": "Przyjmujemy", "Jak anulować rezerwację?": "Stoliki",
			"Chcę zarezerwować stolik": "Stoliki",
			"Czy naprawiacie rowery?":  "Na wszystkie", "Gdzie jest parking?": "Za domem",
			"Czy jest gwarancja na rower?": "Na wszystkie"}},
	"Spanish": {`# Horario
La tienda abre de lunes a sábado, de nueve a seis.

# Entregas
Entregamos en dos días laborables. Los envíos son gratuitos a partir de 50 euros.

# Devoluciones
Puede devolver los artículos en un plazo de treinta días. Le reembolsamos el precio en una semana.

# Pago
Aceptamos tarjetas, transferencias y PayPal.

# Mesas
Las mesas se reservan por teléfono. Una reserva puede cancelarse hasta el mediodía.

# Animales
Los perros son bienvenidos en la terraza.

# Garantía
Todas las bicicletas tienen dos años de garantía. Las reparaciones se hacen en nuestro taller.

# Aparcamiento
Detrás de la casa hay veinte plazas.`,
		map[string]string{"¿Cuándo está abierta la tienda?": "La tienda", "¿A qué hora abren?": "La tienda",
			"¿Cuánto tarda la entrega?": "Entregamos", "¿Cuánto cuesta el envío?": "Entregamos",
			"¿Cómo hago una devolución?": "Puede devolver", "¿Cuándo recibo mi reembolso?": "Puede devolver",
			"¿Puedo pagar con tarjeta?": "Aceptamos", "¿Cómo cancelo mi reserva?": "Las mesas",
			"Quiero reservar una mesa":  "Las mesas",
			"¿Puedo llevar a mi perro?": "Los perros", "¿Reparan bicicletas?": "Todas las",
			"¿Dónde puedo aparcar?": "Detrás"}},
}

// TestLanguages: a question in each language finds the passage that answers it first in a knowledgebase in that
// language, and among the first in one with all languages, with the same result on both databases.
func TestLanguages(t *testing.T) {
	same := map[string]string{}
	each(t, func(t *testing.T, l *library) {
		l.work()
		of := map[string]*library{}
		mixed := *l
		mixed.base = l.knowledgebase(l.user.ID)
		var last []*parley.Document
		for name, c := range spokenTests {
			one := *l
			one.base = l.knowledgebase(l.user.ID)
			of[name] = &one
			one.settled(one.add(name, c.handbook).ID)
			last = append(last, mixed.add(name, c.handbook))
		}
		for _, d := range last {
			mixed.settled(d.ID)
		}
		for name, c := range spokenTests {
			for question, want := range c.questions {
				got := of[name].find(question)
				if len(got) == 0 || !strings.HasPrefix(got[0].Text, want) {
					t.Errorf("%s: %q found %s", name, question, firsts(got))
				}
				all := mixed.find(question) // there, another language may have the word too
				if !slices.ContainsFunc(all[:min(3, len(all))],
					func(p parley.Passage) bool { return strings.HasPrefix(p.Text, want) }) {
					t.Errorf("among all languages: %q found %s", question, firsts(all))
				}
				found := firsts(got) + firsts(all)
				if before, ok := same[question]; ok && before != found {
					t.Errorf("%q found %s on one database, %s on the other", question, before, found)
				}
				same[question] = found
			}
		}
	})
}

func firsts(list []parley.Passage) string {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%.12q %v", p.Text, p.Score))
	}
	return strings.Join(out, ", ")
}
