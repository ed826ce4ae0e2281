package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"parley/internal/parley"
)

// Files are the files of an account by their paths. before are those that are there, whose references to secrets stay.
func (a *Account) Files(before *Account) map[string][]byte {
	old := map[string]*Thing{}
	if before != nil {
		for _, t := range before.Things {
			old[t.Path] = t
		}
	}
	files := map[string][]byte{}
	for _, t := range a.Things {
		if t.Kind.Dir == testDir {
			files[t.Path] = []byte(t.Script + "\n")
			continue
		}
		files[t.Path] = t.Kind.write(t.written(old[t.Path]))
		maps.Copy(files, t.Files)
	}
	return files
}

// scriptName finds the name in a test's script.
var scriptName = regexp.MustCompile(`(?m)^\s*(?:-\s+)?name:\s*(.+?)\s*$`)

// Load reads the files of a folder: those of the kinds' folders; others are nobody's. The error tells every mistake.
func Load(dir fs.FS) (*Account, error) {
	a := &Account{}
	var wrong []error
	fail := func(list ...*Mistake) {
		for _, m := range list {
			wrong = append(wrong, m)
		}
	}
	assistants := map[string]*Thing{} // by the names of their files
	for _, k := range Kinds {
		names, err := k.names(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(dir, name)
			if err != nil {
				return nil, err
			}
			if k.Dir == testDir {
				stem := path.Base(path.Dir(name))
				t := &Thing{Kind: k, Path: name, Script: strings.TrimSpace(string(text)), Of: assistants[stem]}
				if m := scriptName.FindStringSubmatch(t.Script); m != nil {
					t.Name = strings.Trim(m[1], `"'`)
				}
				if t.Of == nil {
					fail(&Mistake{name, 0,
						fmt.Sprintf("there is no file assistants/%s.yaml: the tests of an assistant are in a folder of its file's name", stem)})
				}
				a.Things = append(a.Things, t)
				continue
			}
			t, mistakes := k.read(name, text)
			if fail(mistakes...); len(mistakes) > 0 {
				continue
			}
			t.Name = nameOf(k, t.Body)
			if k.Dir == accountDir {
				t.Name = "account"
			}
			if k.Dir == assistantDir {
				assistants[strings.TrimSuffix(path.Base(name), fileExtension)] = t
			}
			if k.Dir == knowledgeDir {
				fail(t.readDocuments(dir)...)
			}
			if k.Dir == draftDir {
				stem := strings.TrimSuffix(path.Base(name), fileExtension)
				if t.Of = assistants[stem]; t.Of == nil {
					fail(&Mistake{name, 0, fmt.Sprintf("there is no file assistants/%s.yaml: a draft's file is called as that of its assistant", stem)})
					continue
				}
				t.Name = t.Of.Name
				if !t.settle() {
					continue
				}
			}
			a.Things = append(a.Things, t)
		}
	}
	a.sort()
	a.linkNumbers()
	return a, errors.Join(wrong...)
}

// names are the files of a kind in a folder.
func (k *Kind) names(dir fs.FS) ([]string, error) {
	pattern := k.Dir + "/*" + fileExtension
	switch k.Dir {
	case accountDir:
		pattern = accountFile
	case testDir:
		pattern = testDir + "/*/*" + fileExtension
	}
	names, err := fs.Glob(dir, pattern)
	slices.SortFunc(names, comparePaths)
	return names, err
}

// Names are the files of a folder that are an account's.
func Names(dir fs.FS) (all []string, err error) {
	for _, k := range Kinds {
		names, err := k.names(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
		if k.Dir == knowledgeDir {
			for _, ext := range []string{"txt", "pdf", "docx"} {
				names, err := fs.Glob(dir, k.Dir+"/*/*."+ext)
				if err != nil {
					return nil, err
				}
				all = append(all, names...)
			}
		}
	}
	return all, nil
}

// readDocuments reads the files of a knowledgebase.
func (t *Thing) readDocuments(dir fs.FS) (wrong []*Mistake) {
	t.Files = map[string][]byte{}
	for i, d := range places(t.Body, "documents") {
		line := t.line(fmt.Sprintf("documents.%d", i))
		name, _ := d["file"].(string)
		switch {
		case d["type"] == string(parley.Website):
			if name != "" {
				wrong = append(wrong, &Mistake{t.Path, line, "a website has a url or links, and no file"})
			} else if d["url"] == "" && empty(d["links"]) {
				wrong = append(wrong, &Mistake{t.Path, line, "a website needs a url, or links"})
			}
			continue
		case name == "" || !fs.ValidPath(name):
			wrong = append(wrong, &Mistake{t.Path, line, "a document needs a file in the folder knowledgebases, such as prices/menu.txt"})
			continue
		}
		raw, err := fs.ReadFile(dir, t.Kind.Dir+"/"+name)
		if err != nil {
			wrong = append(wrong, &Mistake{t.Path, line, fmt.Sprintf("the file knowledgebases/%s is not read: %v", name, errors.Unwrap(err))})
			continue
		}
		t.Files[t.Kind.Dir+"/"+name] = raw
	}
	return wrong
}
