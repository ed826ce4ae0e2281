package parley

import (
	_ "embed"
	"strings"
)

// countries.txt is from the tz database (iso3166.tab, zone.tab, and the older names of zones): a country's code, its
// name in English, and its time zones.
//
//go:embed countries.txt
var countryTable string

// Country is a country of ISO 3166-1.
type Country struct{ Code, Name string }

// Countries are all countries, by their codes.
var Countries, countryNames, zoneCountries = readCountries()

func readCountries() (list []Country, names, zones map[string]string) {
	names, zones = map[string]string{}, map[string]string{}
	for line := range strings.Lines(countryTable) {
		code, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		name, in, _ := strings.Cut(rest, "\t")
		list, names[code] = append(list, Country{code, name}), name
		for _, zone := range strings.Fields(in) {
			zones[zone] = code
		}
	}
	return list, names, zones
}

// CountryName is the English name of a country, "" where ISO 3166-1 has no such code.
func CountryName(code string) string { return countryNames[code] }

// ZoneCountry is the country that an IANA time zone belongs to, "" for one of none, such as UTC.
func ZoneCountry(zone string) string { return zoneCountries[zone] }
