package store

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// ruled is where the rules begin: the baseline before it only makes new databases.
const ruled = "0261"

// small are tables whose indexes are built in a moment: their rows are made by people, by hand.
var small = []string{"numbers"}

var (
	// keeps a new table in step with an older one; former versions need not know of it
	trigger = regexp.MustCompile(`(?s)-- \+goose StatementBegin\s+CREATE (?:TRIGGER \S+ AFTER|FUNCTION (\S+) RETURNS trigger) ` +
		`.*?-- \+goose StatementEnd`)
	target    = regexp.MustCompile(`(?:INSERT INTO|DELETE FROM|UPDATE) (\S+) (?:SET|SELECT|WHERE|VALUES|\()`)
	writes    = regexp.MustCompile(`INSERT INTO|DELETE FROM|UPDATE \S+ SET|ALTER|TRUNCATE|RAISE|EXECUTE `)
	called    = regexp.MustCompile(`^CREATE TRIGGER \S+ AFTER .* EXECUTE FUNCTION (\S+)$`)
	comment   = regexp.MustCompile(`--[^\n]*`)
	spaces    = regexp.MustCompile(`\s+`)
	made      = regexp.MustCompile(`^CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\S+)`)
	changed   = regexp.MustCompile(`^(?:ALTER TABLE|DROP TABLE|UPDATE|DELETE FROM|INSERT INTO|TRUNCATE) (?:IF EXISTS |ONLY )*(\S+)`)
	indexed   = regexp.MustCompile(`^CREATE (UNIQUE )?INDEX (CONCURRENTLY )?(?:IF NOT EXISTS )?(\S+) ON (\S+)`)
	unindexed = regexp.MustCompile(`^DROP INDEX (CONCURRENTLY )?(IF EXISTS )?(\S+)$`)
	added     = regexp.MustCompile(`^ALTER TABLE \S+ ADD COLUMN (IF NOT EXISTS )?\S+ (.*)$`)
	constant  = regexp.MustCompile(`DEFAULT ('[^']*'|-?[0-9.]+|TRUE|FALSE|NULL)( |$)`)
)

// breaks says what in a migration would stop nodes of the former version, or block everybody's writes for longer than a
// moment.
func breaks(engine, sql string) (wrong []string) {
	concurrent := strings.Contains(sql, "-- +goose NO TRANSACTION")
	if _, down, ok := strings.Cut(sql, "-- +goose Down"); ok && down != "" {
		wrong = append(wrong, "it has a way back, which nobody tests")
	}
	var fresh, away []string
	gone := map[string]string{} // indexes dropped under a lock, and the statement
	var functions []string      // of triggers
	sql = trigger.ReplaceAllStringFunc(sql, func(s string) string {
		found := target.FindAllStringSubmatch(spaces.ReplaceAllString(s, " "), -1)
		if len(found) != len(writes.FindAllString(s, -1)) {
			return s
		}
		for _, m := range found {
			if !strings.Contains(sql, "TABLE "+m[1]+" (") {
				return s
			}
		}
		functions = append(functions, trigger.FindStringSubmatch(s)[1])
		return ""
	})
	for s := range strings.SplitSeq(comment.ReplaceAllString(sql, ""), ";") {
		s = strings.TrimSpace(spaces.ReplaceAllString(s, " "))
		if s == "" || s == "SELECT 1" { // only the other engine needs it
			continue
		}
		if m := called.FindStringSubmatch(s); m != nil && slices.Contains(functions, m[1]) {
			continue
		}
		no := func(why string) { wrong = append(wrong, why+": "+s) }
		if m := made.FindStringSubmatch(s); m != nil {
			fresh = append(fresh, m[1])
			if concurrent {
				no("without a transaction only indexes are made and dropped")
			}
			continue
		}
		if m := changed.FindStringSubmatch(s); m != nil && slices.Contains(fresh, m[1]) {
			continue
		}
		if m := unindexed.FindStringSubmatch(s); m != nil {
			if engine == "postgres" && (m[1] == "" || m[2] == "") {
				gone[m[3]] = s
			}
			away = append(away, m[3])
			continue
		}
		if m := indexed.FindStringSubmatch(s); m != nil {
			switch {
			case engine == "sqlite" || slices.Contains(fresh, m[4]):
			case slices.Contains(small, m[4]):
				delete(gone, m[3])
			case m[2] == "" || !concurrent:
				no("an index on a table that is there is made CONCURRENTLY, in a file with -- +goose NO TRANSACTION")
			case !slices.Contains(away, m[3]):
				no("an index that is made CONCURRENTLY is dropped before, IF EXISTS: a try that was cut off leaves half of it")
			}
			continue
		}
		m := added.FindStringSubmatch(s)
		switch {
		case concurrent && engine == "postgres" && (m == nil || m[1] == ""):
			no("without a transaction only indexes are made and dropped, and columns added IF NOT EXISTS: it may be tried again")
		case m == nil:
			no("nodes of the former version use what is there: only columns, tables and indexes are added, and triggers that write to new tables")
		case strings.Contains(m[2], "DEFAULT") && !constant.MatchString(m[2]):
			no("a column's default is a constant: another has the whole table written anew")
		case strings.Contains(m[2], "NOT NULL") && !strings.Contains(m[2], "DEFAULT"):
			no("nodes of the former version do not fill a new column: it has a default, or may be NULL")
		case strings.Contains(m[2], "UNIQUE") || strings.Contains(m[2], "CHECK") || strings.Contains(m[2], "PRIMARY"):
			no("a rule of a new column reads the whole table under a lock")
		}
	}
	for _, s := range gone {
		wrong = append(wrong, "an index is dropped CONCURRENTLY IF EXISTS: "+s)
	}
	return wrong
}

func TestMigrationsAreSurvived(t *testing.T) {
	names := map[string][]string{}
	for _, engine := range []string{"sqlite", "postgres"} {
		list, err := fs.Glob(embedded, "migrations/"+engine+"/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range list {
			base := path.Base(name)
			names[engine] = append(names[engine], base)
			if base[:4] < ruled {
				continue
			}
			sql, err := fs.ReadFile(embedded, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range breaks(engine, string(sql)) {
				t.Errorf("%s: %s", name, wrong)
			}
		}
	}
	if !slices.Equal(names["sqlite"], names["postgres"]) {
		t.Errorf("the engines differ: %v, %v", names["sqlite"], names["postgres"])
	}
}

// The rules find the mistakes that they are made for.
func TestMigrationRules(t *testing.T) {
	const alone = "-- +goose NO TRANSACTION\n"
	acts := func(table string) string {
		return "\n-- +goose StatementBegin\nCREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n  INSERT INTO " + table +
			" VALUES (1);\n  RETURN NULL;\nEND $$;\n-- +goose StatementEnd\n" +
			"CREATE TRIGGER t AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION f();\n"
	}
	for sql, wrong := range map[string]bool{
		"ALTER TABLE users ADD COLUMN a BIGINT;": false,
		"ALTER TABLE users ADD COLUMN a BIGINT NOT NULL DEFAULT 0; -- why; and\nALTER TABLE users ADD COLUMN b TEXT;": false,
		"CREATE TABLE a (id BIGINT PRIMARY KEY, t TEXT NOT NULL UNIQUE); CREATE UNIQUE INDEX a_t ON a (t);":           false,
		alone + "DROP INDEX CONCURRENTLY IF EXISTS u; CREATE INDEX CONCURRENTLY u ON users (name);":                   false,
		"DROP INDEX numbers_owned; CREATE UNIQUE INDEX numbers_owned ON numbers (phone_number, type);":                false,
		"DROP INDEX numbers_owned;":                                                       true,
		"CREATE TABLE a (id BIGINT); INSERT INTO a SELECT id FROM users;":                 false,
		alone + "ALTER TABLE users ADD COLUMN IF NOT EXISTS a BIGINT NOT NULL DEFAULT 0;": false,
		"ALTER TABLE users ADD COLUMN IF NOT EXISTS a BIGINT NOT NULL;":                   true,
		"ALTER TABLE users ADD COLUMN a BIGINT NOT NULL;":                                 true,
		"ALTER TABLE users ADD COLUMN a TEXT DEFAULT gen_random_uuid();":                  true,
		"ALTER TABLE users ADD COLUMN a TEXT UNIQUE;":                                     true,
		"ALTER TABLE users DROP COLUMN name;":                                             true,
		"ALTER TABLE users RENAME COLUMN name TO n;":                                      true,
		"ALTER TABLE users ALTER COLUMN name TYPE BIGINT;":                                true,
		"ALTER TABLE users ADD CONSTRAINT c CHECK (balance > 0);":                         true,
		"DROP TABLE users;":                                                                        true,
		alone + "DROP TABLE prompt_versions;":                                                      true,
		"UPDATE prompt_versions SET version = 1;":                                                  true,
		"UPDATE users SET name = '';":                                                              true,
		"CREATE INDEX u ON users (name);":                                                          true,
		"CREATE INDEX CONCURRENTLY u ON users (name);":                                             true,
		alone + "CREATE INDEX CONCURRENTLY u ON users (name);":                                     true,
		"DROP INDEX users_email_key;":                                                              true,
		alone + "ALTER TABLE users ADD COLUMN a BIGINT;":                                           true,
		"CREATE TABLE a (id BIGINT);" + acts("a"):                                                  false,
		"CREATE TABLE a (id BIGINT);" + acts("users"):                                              true,
		"CREATE TABLE a (id BIGINT);" + acts("a") + acts("b"):                                      true,
		"CREATE TRIGGER t AFTER DELETE ON users EXECUTE FUNCTION f();":                             true,
		"ALTER TABLE users ADD COLUMN a BIGINT;\n-- +goose Down\nALTER TABLE users DROP COLUMN a;": true,
	} {
		if got := breaks("postgres", "-- +goose Up\n"+sql); (len(got) > 0) != wrong {
			t.Errorf("%s: %q", sql, got)
		}
	}
}

// WithMigrations replaces the program's migrations until the test ends: with those that keep selects, and more.
func WithMigrations(t *testing.T, keep func(name string) bool, more map[string]string) {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(embedded, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !keep(path.Base(name)) {
			return err
		}
		b, err := fs.ReadFile(embedded, name)
		files[name] = &fstest.MapFile{Data: b}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, sql := range more {
		files["migrations/"+name] = &fstest.MapFile{Data: []byte(fmt.Sprintf("-- +goose Up\n%s", sql))}
	}
	migrations = files
	t.Cleanup(func() { migrations = embedded })
}
