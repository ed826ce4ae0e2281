package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	needs "parley/internal/testenv"
)

// Clients are generated from the API reference by popular generators, with their default settings, and compile in
// strict mode. scripts/setup installs the generators, pinned, in .cache/generators.
func TestGeneratedClients(t *testing.T) {
	share(t, compiler)
	tools, err := filepath.Abs("../.cache/generators")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(tools, "bin/oapi-codegen"))
	needs.Nil(t, err)
	node := needs.Program(t, "node")
	dir := t.TempDir()
	reference := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(reference, readReference(t), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s %s: %v\n%.4000s%.4000s", filepath.Base(name), strings.Join(args, " "), err, out.String(),
				said.String())
		}
		return out.String()
	}
	module := filepath.Join(tools, "node_modules")

	t.Run("redocly", func(t *testing.T) {
		for line := range strings.Lines(run(t, tools, node, "lint.mjs", reference)) {
			if strings.HasPrefix(line, "error ") {
				t.Error(line)
			}
		}
	})
	t.Run("oapi-codegen", func(t *testing.T) {
		client := filepath.Join(dir, "client")
		if err := os.CopyFS(client, os.DirFS("testdata/generators/client")); err != nil {
			t.Fatal(err)
		}
		code := run(t, client, filepath.Join(tools, "bin/oapi-codegen"), "-package", "client", reference)
		if err := os.WriteFile(filepath.Join(client, "client.go"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, client, "go", "build", "-trimpath", "-mod=mod", "./...")
	})
	t.Run("openapi-typescript", func(t *testing.T) {
		types := filepath.Join(dir, "api.d.ts")
		run(t, tools, node, filepath.Join(module, "openapi-typescript/bin/cli.js"), reference, "-o", types)
		use := filepath.Join(dir, "use.ts")
		if err := os.WriteFile(use, []byte(useOfTypes), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, dir, node, filepath.Join(module, "typescript/bin/tsc"), "--strict", "--noEmit", "--skipLibCheck",
			"false", "--target", "es2022", "--module", "esnext",
			"--moduleResolution", "bundler", use)
	})
}

// useOfTypes is what a client would write: an answer can be used without a check for null, enums have known values,
// and money is a number.
const useOfTypes = `import type { components, paths } from "./api";
type Call = paths["/user/calls/{id}"]["get"]["responses"][200]["content"]["application/json"];
type Ended = components["schemas"]["CallEnded"];
export const status = (c: Call): "initiated" | "ringing" | "in-progress" | "completed" | "busy" | "no-answer" | "failed" | "canceled" => c.status;
export const cost = (c: Call): number => c.total_cost;
export const since = (c: Call): string => c.created_at;
export const event = (e: Ended): number => e.duration;
export const call: paths["/user/make_call"]["post"]["requestBody"]["content"]["application/json"] = {
  phone_number: "+12025550123", assistant_id: 1, variables: { customer_name: "Ana" },
};
// What has a default need not be sent.
export const tool: paths["/user/tools"]["post"]["requestBody"]["content"]["application/json"] = {
  name: "look_up", description: "Finds an order", endpoint: "https://example.com/orders", method: "GET",
};
// @ts-expect-error a status that there is not
export const wrong: Call["status"] = "lost";
`

func readReference(t *testing.T) []byte {
	t.Helper()
	p := start(t, "PARLEY_SIP_LISTEN=off", "PARLEY_SIGNUP=on")
	res, err := http.Get(p.URL + "/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the reference: %d, %v", res.StatusCode, err)
	}
	return text
}
