package knowledge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/internal/store"
)

// spokenTests are handbooks, and questions with what the passage that answers begins with.
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
Dogs are welcome on the terrace.`, map[string]string{"When are you open?": "The shop", "How long does delivery take?": "We deliver", "Can I return goods?": "You can", "How can I pay by card?": "We accept",
		"How do I cancel my booking?": "Tables", "Are dogs allowed?": "Dogs", "What does shipping cost?": "We deliver", "When will I get my refund?": "You can"}},
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
Achter het huis zijn twintig parkeerplaatsen.`, map[string]string{"Wanneer zijn jullie open?": "De winkel", "Wat zijn de openingstijden?": "De winkel", "Hoe snel wordt mijn bestelling geleverd?": "Wij leveren", "Wat zijn de verzendkosten?": "Wij leveren",
		"Kan ik iets terugsturen?": "Artikelen", "Hoe kan ik betalen?": "U betaalt", "Hoe annuleer ik mijn reservering?": "Tafels", "Kan ik een tafel reserveren?": "Tafels", "Mag mijn hond mee?": "Honden",
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
Vingt places se trouvent derrière la maison, à l'entrée nord.`, map[string]string{"Quelles sont vos heures d'ouverture ?": "Le magasin", "Quand ouvrez-vous ?": "Le magasin", "En combien de temps livrez-vous ?": "Nous livrons", "Combien coûte l'envoi ?": "Nous livrons",
		"Comment obtenir un remboursement ?": "Vous pouvez", "Comment puis-je payer par carte ?": "Nous acceptons", "Comment annuler ma réservation ?": "Les tables", "Puis-je réserver une table ?": "Les tables", "Mon chien peut-il venir ?": "Les chiens",
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
Za domem znajduje się dwadzieścia miejsc parkingowych.`, map[string]string{"Kiedy sklep jest otwarty?": "Sklep", "O której godzinie otwieracie?": "Sklep", "Ile trwa dostawa?": "Zamówienia", "Ile kosztuje przesyłka?": "Zamówienia",
		"Czy mogę zrobić zwrot towaru?": "Towar", "Kiedy dostanę zwrot pieniędzy?": "Towar", "Czy można płacić kartą?": "Przyjmujemy", "Jak anulować rezerwację?": "Stoliki", "Chcę zarezerwować stolik": "Stoliki",
		"Czy naprawiacie rowery?": "Na wszystkie", "Gdzie jest parking?": "Za domem", "Czy jest gwarancja na rower?": "Na wszystkie"}},
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
Detrás de la casa hay veinte plazas.`, map[string]string{"¿Cuándo está abierta la tienda?": "La tienda", "¿A qué hora abren?": "La tienda", "¿Cuánto tarda la entrega?": "Entregamos", "¿Cuánto cuesta el envío?": "Entregamos",
		"¿Cómo hago una devolución?": "Puede devolver", "¿Cuándo recibo mi reembolso?": "Puede devolver", "¿Puedo pagar con tarjeta?": "Aceptamos", "¿Cómo cancelo mi reserva?": "Las mesas", "Quiero reservar una mesa": "Las mesas",
		"¿Puedo llevar a mi perro?": "Los perros", "¿Reparan bicicletas?": "Todas las", "¿Dónde puedo aparcar?": "Detrás"}},
}

// TestLanguages: a question in each language finds the passage that answers it first in a knowledgebase of that language, and among the first
// in one of all, with the same answer on both databases.
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
				all := mixed.find(question) // where another language may have the word too
				if !slices.ContainsFunc(all[:min(3, len(all))], func(p parley.Passage) bool { return strings.HasPrefix(p.Text, want) }) {
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

// TestKin: forms of a word have one stem, other words another.
func TestKin(t *testing.T) {
	for l, sets := range map[*language][]string{
		dutch:   {"bezorgen bezorgt bezorging bezorgd", "betalen betaalt betaling betaald", "kost kosten", "open opent openen geopend opening", "huis huizen", "leveren levert levering geleverd leveringen", "annuleren annuleert annulering geannuleerd", "winkel winkels"},
		french:  {"livrer livrez livrons livraison livraisons", "ouvert ouverte ouverture ouvrez ouvrir l'ouverture d'ouverture", "payer paiement paiements payez", "rembourser remboursement rembourse", "heure heures l'heure", "reserver reservation reservez", "delai delais", "annuler annulation annulee"},
		polish:  {"dostawa dostawy dostawie dostawe dostarczamy", "zwrot zwrotu zwroty zwrocic zwracac", "płatnosc płatnosci płacic zapłacic", "godzina godziny godzin godzinach", "rezerwacja rezerwacji rezerwacje rezerwowac", "otwarty otwarte otwieracie otwarcia", "koszt kosztow kosztuje", "paczka paczki paczek"},
		spanish: {"entrega entregas entregamos entregar", "devolver devolucion devoluciones devuelto", "abre abren abrir abierto abierta apertura", "pagar pago pagos pague", "cuesta cuestan costar coste", "envio envios enviar enviamos", "reembolso reembolsamos reembolsar", "cerrar cierra cerrado"},
	} {
		for i, set := range sets {
			for asked := range strings.FieldsSeq(set) {
				if _, rest, ok := strings.Cut(asked, "'"); ok {
					asked = rest
				}
				asked = l.base(asked)
				for k, other := range sets {
					for w := range strings.FieldsSeq(strings.ReplaceAll(other, "'", "")) {
						if (l.kin(asked, l.stem(asked), w) == sameStem) != (i == k) {
							t.Errorf("%s (%s) and %s (%s)", asked, l.stem(asked), w, l.stem(w))
						}
					}
				}
			}
		}
	}
}

// TestIndexStays: what is indexed is what earlier versions indexed. Passages that they stored are found by the same tokens.
func TestIndexStays(t *testing.T) {
	chunks := []store.Chunk{{Title: "Winkel", Heading: "Levering", Text: "Wij leveren boeken; de boeken en het boeken. Les horaires d'ouverture. Płatność."}}
	words := lexicon{}.indexed(chunks)
	slices.Sort(chunks[0].Tokens)
	if got := strings.Join(chunks[0].Tokens, " "); got != "+boeken -lever -winkel _boeken _de _douvertur _en _horair _leveren _płatnosc _wij" {
		t.Errorf("%s", got)
	}
	var list []string
	for _, w := range words {
		list = append(list, w.Word)
	}
	if got := strings.Join(list, " "); got != "boeken de douverture en horaires leveren levering płatnosc wij winkel" {
		t.Errorf("%s", got)
	}
}

// TestSpoken: the language is the question's where its words say which, else that of the knowledgebase, whatever words that has borrowed.
func TestSpoken(t *testing.T) {
	for _, c := range []struct {
		question string
		have     map[string]int // of a thousand passages
		want     []*language
		said     bool
	}{
		{"How do I open the door?", map[string]int{"wij": 500, "jullie": 500}, nil, true}, // which Dutch has words of
		{"Wanneer zijn jullie open?", nil, []*language{dutch}, true}, {"Est-ce que vous livrez ?", nil, []*language{french}, true}, {"Czy jest parking?", nil, []*language{polish}, true},
		{"¿Cuál es el precio?", map[string]int{"puede": 30, "hasta": 30}, []*language{spanish}, true}, {"printer", nil, nil, false},
		{"Comment syntax", nil, nil, true}, {"Comment syntax", map[string]int{"con": 300, "sans": 300, "w": 300}, nil, true}, {"od -w -z", map[string]int{"w": 300, "z": 300, "od": 300}, nil, false},
		{"printer", map[string]int{"wij": 30, "jullie": 30}, []*language{dutch}, false}, {"printer", map[string]int{"votre": 3, "vos": 49}, []*language{french}, false},
		{"printer", map[string]int{"hay": 20, "todos": 3, "wij": 1, "chez": 4}, nil, false}, {"printer", map[string]int{"hay": 900}, nil, false},
		{"open in weekend", map[string]int{"wij": 500, "jullie": 500}, []*language{dutch}, false}, {"open in weekend", nil, nil, false},
	} {
		var words []string
		terms(c.question, func(w string) { words = append(words, w) })
		if got, said := spoken(words, c.have, 1000); !slices.Equal(got, c.want) || said != c.said {
			t.Errorf("%q in %v: %d languages, %v", c.question, c.have, len(got), said)
		}
	}
}
