package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestHouseMacOS checks that the program compiles for macOS, on both processors, as far as types can tell: a whole build
// for another system takes minutes. Of other modules' functions only the signatures are looked at.
func TestHouseMacOS(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			found, err := packages.Load(&packages.Config{
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax |
					packages.NeedTypesSizes,
				Env: append(os.Environ(), "GOOS=darwin", "GOARCH="+arch, "CGO_ENABLED=0"),
				ParseFile: func(files *token.FileSet, name string, text []byte) (*ast.File, error) {
					file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
					if file != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
						for _, decl := range file.Decls {
							if fn, ok := decl.(*ast.FuncDecl); ok {
								fn.Body = nil
							}
						}
					}
					return file, err
				},
			}, "./cmd/parley")
			if err != nil || len(found) != 1 {
				t.Fatal(len(found), err)
			}
			own := 0
			packages.Visit(found, nil, func(p *packages.Package) {
				if !strings.HasPrefix(p.PkgPath, "parley") {
					return
				}
				own++
				for _, err := range p.Errors {
					t.Error(fmt.Errorf("%s: %w", p.PkgPath, err))
				}
			})
			if own < 50 {
				t.Errorf("only %d packages of our own", own)
			}
		})
	}
}
