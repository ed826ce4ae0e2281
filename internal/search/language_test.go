package search

import (
	"slices"
	"strings"
	"testing"
)

// TestKin: forms of one word have the same stem, other words have another.
func TestKin(t *testing.T) {
	for l, sets := range map[*language][]string{
		dutch: {"bezorgen bezorgt bezorging bezorgd", "betalen betaalt betaling betaald", "kost kosten",
			"open opent openen geopend opening", "huis huizen", "leveren levert levering geleverd leveringen",
			"annuleren annuleert annulering geannuleerd", "winkel winkels"},
		french: {"livrer livrez livrons livraison livraisons",
			"ouvert ouverte ouverture ouvrez ouvrir l'ouverture d'ouverture", "payer paiement paiements payez",
			"rembourser remboursement rembourse", "heure heures l'heure", "reserver reservation reservez",
			"delai delais", "annuler annulation annulee"},
		polish: {"dostawa dostawy dostawie dostawe dostarczamy", "zwrot zwrotu zwroty zwrocic zwracac",
			"płatnosc płatnosci płacic zapłacic", "godzina godziny godzin godzinach",
			"rezerwacja rezerwacji rezerwacje rezerwowac", "otwarty otwarte otwieracie otwarcia",
			"koszt kosztow kosztuje", "paczka paczki paczek"},
		spanish: {"entrega entregas entregamos entregar", "devolver devolucion devoluciones devuelto",
			"abre abren abrir abierto abierta apertura", "pagar pago pagos pague", "cuesta cuestan costar coste",
			"envio envios enviar enviamos", "reembolso reembolsamos reembolsar", "cerrar cierra cerrado"},
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

// TestIndexStays: indexing gives the same tokens as in earlier versions. Stored passages are found by those tokens.
func TestIndexStays(t *testing.T) {
	chunks := []Chunk{{Title: "Winkel", Heading: "Levering",
		Text: "Wij leveren boeken; de boeken en het boeken. Les horaires d'ouverture. Płatność."}}
	words := Lexicon{}.Index(chunks)
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

// TestSpoken: the language is the question's if its words show which it is, else the knowledgebase's, whatever words
// that has borrowed.
func TestSpoken(t *testing.T) {
	for _, c := range []struct {
		question string
		have     map[string]int // of a thousand passages
		want     []*language
		said     bool
	}{
		{"How do I open the door?", map[string]int{"wij": 500, "jullie": 500}, nil, true}, // some of these words are also Dutch
		{"Wanneer zijn jullie open?", nil, []*language{dutch}, true},
		{"Est-ce que vous livrez ?", nil, []*language{french}, true},
		{"Czy jest parking?", nil, []*language{polish}, true},
		{"¿Cuál es el precio?", map[string]int{"puede": 30, "hasta": 30}, []*language{spanish}, true},
		{"printer", nil, nil, false},
		{"Comment syntax", nil, nil, true}, {"Comment syntax", map[string]int{"con": 300, "sans": 300, "w": 300},
			nil, true}, {"od -w -z", map[string]int{"w": 300, "z": 300, "od": 300}, nil, false},
		{"printer", map[string]int{"wij": 30, "jullie": 30}, []*language{dutch}, false},
		{"printer", map[string]int{"votre": 3, "vos": 49}, []*language{french}, false},
		{"printer", map[string]int{"hay": 20, "todos": 3, "wij": 1, "chez": 4}, nil, false},
		{"printer", map[string]int{"hay": 900}, nil, false},
		{"open in weekend", map[string]int{"wij": 500, "jullie": 500}, []*language{dutch}, false},
		{"open in weekend", nil, nil, false},
	} {
		var words []string
		terms(c.question, func(w string) { words = append(words, w) })
		if got, said := spoken(words, c.have, 1000); !slices.Equal(got, c.want) || said != c.said {
			t.Errorf("%q in %v: %d languages, %v", c.question, c.have, len(got), said)
		}
	}
}
