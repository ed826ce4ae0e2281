package console

import (
	"embed"
	"net/http"
	"path"
	"strings"

	"parley/internal/web"
)

//go:embed asset
var assetFS embed.FS

// A file never changes under its name: the name holds a hash of the content.
var (
	assets     = map[string]*web.Asset{} // by the name that is served
	assetNames = map[string]string{}     // the file's name -> the name that is served
)

func init() {
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml"}
	entries, err := assetFS.ReadDir("asset")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		file := e.Name()
		ext := path.Ext(file)
		if types[ext] == "" {
			continue // a licence
		}
		plain, err := assetFS.ReadFile("asset/" + file)
		if err != nil {
			panic(err)
		}
		a := web.NewAsset(plain, types[ext])
		name := strings.TrimSuffix(file, ext) + "." + a.Tag[:12] + ext
		assets[name], assetNames[file] = a, name
	}
}

// assetPath is where a file of the asset folder is served.
func assetPath(file string) string {
	name := assetNames[file]
	if name == "" {
		panic("console: no asset " + file)
	}
	return "/assets/" + name
}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	a := assets[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	a.Serve(w, r)
}
