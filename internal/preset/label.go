package preset

import "regexp"

// labels are what the console calls a trunk's fields, and the values of some: a test holds them equal to its form.
var labels = map[string]string{
	"phone_number": "Number", "numbers": "Further numbers", "sip_address": "SIP address", "outbound_proxy": "Outbound proxy",
	"sip_username": "User name", "sip_password": "Password", "codecs": "Codecs", "prefix": "Prefix", "country_code": "Country",
	"from_user": "User in From", "from_domain": "Host in From", "contact_domain": "Host in Contact",
	"allowed_inbound_ips": "Addresses", "called_number_from": "The number called is in", "inbound_hosts": "Calls also come from",
	"register": "Register", "user_phone": "Add user=phone", "options": "Send OPTIONS",
	"inbound_authorization_type":      "Who may call in",
	"inbound_authorization_type=auth": "Callers with the password",
	"inbound_authorization_type=ip":   "Callers from the addresses below",
	"sip_trunk_type":                  "What it has",
	"sip_trunk_type=number":           "A telephone number",
	"sip_trunk_type=extension":        "An extension of a telephone system",
	"transport":                       "Transport",
	"transport=udp":                   "UDP",
	"transport=tcp":                   "TCP",
	"transport=tls":                   "TLS",
	"srtp":                            "Encrypted audio (SRTP)",
	"srtp=required":                   "Required: no calls without it",
	"sip_calling_format":              "Numbers are written",
	"sip_calling_format=+e164":        "+4930901820",
	"sip_calling_format=e164":         "4930901820",
	"sip_calling_format=national":     "As dialled in the country",
	"identity_header":                 "Caller id",
	"identity_header=ppi":             "P-Preferred-Identity",
	"privacy":                         "A hidden number",
	"privacy=id":                      "From stays, and the provider hides it",
}

// fieldMark is a field of a trunk in a guide, `sip_address`, or a field and its value, `transport=tls`.
var fieldMark = regexp.MustCompile("`([a-z_]+)(?:=([^`]+))?`")

// InConsole is a text of a guide with the fields of a trunk as the console calls them.
func InConsole(text string) string {
	return fieldMark.ReplaceAllStringFunc(text, func(mark string) string {
		_, value, label := inConsole(mark)
		if value == "" {
			return label
		}
		return label + ": " + value
	})
}

// inConsole is a field of a guide: its name, its value as the console shows it, and its label there.
func inConsole(mark string) (field, value, label string) {
	m := fieldMark.FindStringSubmatch(mark)
	field, value = m[1], m[2]
	if shown := labels[field+"="+value]; shown != "" {
		value = shown
	}
	return field, value, labels[field]
}

// names reports whether a guide's texts name a field.
func names(list []string, field string) bool {
	for _, text := range list {
		for _, m := range fieldMark.FindAllStringSubmatch(text, -1) {
			if m[1] == field {
				return true
			}
		}
	}
	return false
}
