package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Columns are the names of a list's columns, as the file has them, without those that have none.
func Columns(ctx context.Context, file io.ReadSeeker, size int64) ([]string, error) {
	done, err := toRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := readHeader(file, size, nil)
	if errors.As(err, new(badSheet)) || errors.As(err, new(*badRow)) { // the import says it
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	defer s.Close()
	return slices.DeleteFunc(s.names, func(name string) bool { return name == "" || name == rowColumn || name == whyColumn }), nil
}

// usual is what a column of that name is taken for where nothing else is said.
func usual(name string) string {
	if name == rowColumn || name == whyColumn { // of rows that were left out before
		return ""
	}
	if plain := plainName(name); plain == phoneColumn || plain == "phone" {
		return phoneColumn
	}
	return name
}

func plainName(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(name))
}

// Suggest is what a column would best be taken for, among an assistant's variables: the one of the same name, but for
// spaces, signs and upper case.
func Suggest(column string, variables []string) string {
	if as := usual(column); as == phoneColumn || slices.Contains(variables, as) {
		return as
	}
	for _, name := range variables {
		if letters(name) == letters(column) && letters(name) != "" {
			return name
		}
	}
	return usual(column)
}

// phoneNames are how columns of phone numbers are called, in letters and digits alone.
var phoneNames = strings.Fields(`mobile mobilephone mobilenumber mobileno cell cellphone cellnumber tel telephone telephonenumber telno phoneno phonenr
	phone1 phonenumber whatsapp whatsappnumber contactnumber number msisdn mobil mobilnummer mobiltelefon handy handynummer telefon telefonnummer telefonnr
	rufnummer nummer telefono teléfono telefone celular movil móvil cellulare numero número numerotelefono portable téléphone numérodetéléphone gsm telefoon
	telefoonnummer telefonnummer telefonszám telefoninumero numertelefonu телефон мобильный 电话 手机 电话号码 手机号 電話 電話番号 携帯 전화번호 휴대폰`)

// PhoneColumn is the column that holds phone numbers by its name, "" where none is called so.
func PhoneColumn(names []string) string {
	for _, name := range names {
		if usual(name) == phoneColumn {
			return name
		}
	}
	for _, name := range names {
		if slices.Contains(phoneNames, letters(name)) {
			return name
		}
	}
	return ""
}

// letters are the letters and digits of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
