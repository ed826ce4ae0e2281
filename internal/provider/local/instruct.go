package local

import (
	"regexp"
	"strings"
)

// orders begin sentences that tell the assistant how to behave, whatever follows.
var orders = regexp.MustCompile(`(?i)^(?:if (?:the |a |an )?(?:customer|user|caller|client|person|they|asked|you)|when (?:the |a )?(?:customer|user|caller|client|asked)|you (?:must|should|may|might|can|cannot|can't|will|shall|need|have to|always|never|do not|don't)|you(?:'re| are) (?:not )?(?:to|allowed to|supposed to|expected to)\b|your (?:task|job|goal|role|tone|answers|replies|responses|instructions|purpose|mission|objective|only)|(?:rules?|instructions?|guidelines?|style|tone)\s*:|(?:the assistant|assistants?) (?:must|should|may|never|always|shall|will))\b`)

// condition is what stands in front of the order itself: "When you don't know something, …".
var condition = regexp.MustCompile(`(?i)^(?:(?:if|when(?:ever)?|before|after|once|unless|until|while|in case|as soon as|for every|for each|at the (?:end|beginning|start))\b[^,:;]*[,:;]\s*(?:then\s+)?|(?:first|firstly|second|next|then|finally|also|otherwise|instead|and|but|so|by default|in general|generally|under no circumstances)\b,?\s+|[-–—•]\s*)`)

// verbs in the imperative order the assistant; customers are told to call, to come or to bring something.
var verbs = set(`always never not only please dont don't do be act adapt acknowledge address admit adopt agree aim allow answer apologise apologize ask
assist assume attempt avoid behave check clarify collect comply confirm consider continue convince decline describe determine discuss
elaborate encourage end engage ensure escalate explain express focus follow forward gather give greet guide handle hang help identify
ignore imagine include inform introduce invite keep lead let limit list listen mention mimic offer persuade pick play pretend prioritise
prioritize proceed promise pronounce propose provide qualify quote read recommend redirect refer refrain refuse reject remain remember
remind repeat rephrase reply request respect respond say sell share show sound speak spell start state stay stick stop suggest summarise
summarize switch talk tell thank transfer translate treat try understand upsell use verify wait warn welcome wish write make take note
sag sage sagen antworte antworten frag frage fragen sei seien sprich sprechen nenne nennen bitte bleib bleibe erkläre erwähne begrüße`)

// customer is the one whom such an order is about.
var customer = regexp.MustCompile(`(?i)^[\p{L}'-]+ (?:[\p{L}'-]+ )?(?:the |a |an |each |every |any |all )?(?:customers?|callers?|users?|clients?|guests?|visitors?|patients?|leads?|prospects?|them|him|her)\b`)

// described are words that look like orders and begin what a business says of itself.
var described = regexp.MustCompile(`(?i)^(?:only|check|use|offer|list|show|end|start|lead|guide|note|quote|stay|help|play|stop|share|state)(?:-|s\b| (?:is|are|was|costs?|from|for|begins?|of|at|by|in|on|and)\b)`)

// instructs says whether a sentence tells the assistant how to behave. That is nobody else's business.
func instructs(s string) bool {
	for {
		s = strings.TrimLeft(s, " \t\"'“(*_")
		if orders.MatchString(s) {
			return true
		}
		rest := condition.FindString(s)
		if rest == "" || len(rest) >= len(s) {
			break
		}
		s = s[len(rest):]
	}
	first, _, _ := strings.Cut(s, " ")
	first = strings.ToLower(strings.Trim(first, ".,:;!?"))
	return verbs[strings.ReplaceAll(first, "’", "'")] && !described.MatchString(s) || customer.MatchString(s) && bases[first]
}

// bases are verbs that order the assistant where a customer is their object: "Call the customer".
var bases = set(`call book send email text phone contact charge refund enter record save log mark schedule cancel put leave bring direct
connect notify update sign find get set pay visit see meet serve support teach train advise congratulate calm comfort reassure route pass
hold warn push press upgrade register look`)
