package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// materials writes what the program is made of, by its own record of modules, as CycloneDX 1.5
// (https://cyclonedx.org/docs/1.5/json/).
func (r *release) materials(program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	type component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl,omitempty"`
	}
	list := []component{{"platform", "go", info.GoVersion, ""}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, component{"library", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version})
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	err = e.Encode(map[string]any{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{"timestamp": r.date.Format(time.RFC3339),
			"component": component{"application", "parley", r.version.full, ""}},
		"components": list})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, "parley-"+r.version.full+".cdx.json"), text.Bytes(), 0o644)
}
