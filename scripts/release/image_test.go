package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// madeImage is the layout's tar file of an image whose Debian is a few files: a real one takes minutes, and is tried by scripts/try-image.
func madeImage(t *testing.T, when time.Time) string {
	t.Helper()
	root, program := t.TempDir(), filepath.Join(t.TempDir(), "parley")
	for path, text := range map[string]string{"etc/passwd": "root:x:0:0\n", "usr/bin/flite": "#!/bin/sh\n", "var/log/dpkg.log": when.String(),
		"usr/lib/x/__pycache__/x.pyc": when.String(), "usr/share/doc/x/copyright": "x", "debootstrap/log": "x"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755),
			os.WriteFile(filepath.Join(root, path), []byte(text), 0o644), os.Chtimes(filepath.Join(root, path), when, when)); err != nil {
			t.Fatal(err)
		}
	}
	mode := fs.FileMode(0o755) // of /sys, as the machine that builds happens to have it
	if when.Year() == 1970 {
		mode = 0o555
	}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "sys"), 0o755), os.Chmod(filepath.Join(root, "sys"), mode),
		os.Mkdir(filepath.Join(root, "tmp"), 0o700),
		os.Chmod(filepath.Join(root, "usr/bin/flite"), 0o755), os.Symlink("flite", filepath.Join(root, "usr/bin/say")),
		os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	r := &release{version: versionOf("v1.2.3", commitDate), commit: "0123", date: commitDate, dist: t.TempDir()}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := r.layered(arch, root, program)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1,
			Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	to := filepath.Join(r.dist, "image.tar")
	if err := r.writeImage(index, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// The image obeys the OCI specification, runs as nobody special, and has the same bytes whenever it is made.
func TestImage(t *testing.T) {
	t.Chdir("../..")
	one, two := madeImage(t, time.Unix(1, 0)), madeImage(t, time.Now())
	first, err1 := os.ReadFile(one)
	second, err2 := os.ReadFile(two)
	if err1 != nil || err2 != nil || !bytes.Equal(first, second) {
		t.Errorf("two images differ: %v %v", err1, err2)
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", one, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	var mark struct {
		Version string `json:"imageLayoutVersion"`
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "oci-layout")); err != nil || json.Unmarshal(raw, &mark) != nil || mark.Version != "1.0.0" {
		t.Errorf("oci-layout: %s %v", raw, err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := imageIn(dir, arch)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(img); err != nil { // digests, sizes, diff ids
			t.Error(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := img.Manifest()
		if err != nil || manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON ||
			len(manifest.Layers) != 2 || manifest.Layers[0].MediaType != types.OCILayer || len(config.History) != 2 {
			t.Errorf("the manifest: %+v %v", manifest, err)
		}
		c := config.Config
		if config.OS != "linux" || config.Architecture != arch || c.User != "10001:10001" || len(c.Volumes) != 1 || c.Healthcheck == nil ||
			!slices.Equal(c.Entrypoint, []string{"/usr/bin/parley"}) || c.StopSignal != "SIGTERM" {
			t.Errorf("the config: %+v", config)
		}
	}
	var files bytes.Buffer
	if err := flatten(one, "amd64", &files); err != nil {
		t.Fatal(err)
	}
	got := map[string]*tar.Header{}
	for tape := tar.NewReader(&files); ; {
		h, err := tape.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[strings.TrimSuffix(h.Name, "/")] = h
	}
	if h := got["usr/bin/parley"]; h == nil || h.Mode&0o777 != 0o755 || h.Uid != 0 {
		t.Errorf("the program: %+v", h)
	}
	if h := got["var/lib/parley"]; h == nil || h.Uid != imageUser || h.Mode&0o777 != 0o700 {
		t.Errorf("the data: %+v", h)
	}
	for name, mode := range map[string]int64{"sys": 0o755, "tmp": 0o1777} {
		if h := got[name]; h == nil || h.Mode != mode {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if h := got["usr/bin/say"]; h == nil || h.Linkname != "flite" {
		t.Errorf("a link: %+v", h)
	}
	for _, away := range []string{"var/log/dpkg.log", "usr/lib/x/__pycache__/x.pyc", "usr/share/doc/x/copyright", "debootstrap/log",
		"debootstrap"} {
		if got[away] != nil {
			t.Errorf("%s is in it", away)
		}
	}
}

// The Dockerfile builds what make release builds: the same user, packages, ports and check.
func TestDockerfile(t *testing.T) {
	raw, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{strings.Join(recommended["deb"], " "), "USER 10001:10001", "VOLUME /var/lib/parley",
		`CMD ["/usr/bin/parley", "ready"]`, "EXPOSE 8080/tcp 5060/udp 5060/tcp 8189/udp", "FROM debian:" + suite + "-slim"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %q", want)
		}
	}
}

// compose.yaml obeys the Compose specification's schema, and each profile has what it needs.
func TestCompose(t *testing.T) {
	for profile, want := range map[string][]string{"": {"parley"}, "postgres": {"parley", "parley-postgres", "postgres"},
		"local": {"kokoro", "ollama", "ollama-model", "parley", "parley-local", "speaches", "speaches-model"}} {
		o, err := cli.NewProjectOptions([]string{"../../deploy/compose.yaml"},
			cli.WithProfiles(slices.DeleteFunc([]string{profile}, func(p string) bool { return p == "" })))
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.LoadProject(t.Context())
		if err != nil {
			t.Fatalf("profile %q: %v", profile, err)
		}
		got := p.ServiceNames()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("profile %q: %q, want %q", profile, got, want)
		}
		for name, s := range p.Services {
			if strings.HasPrefix(name, "parley") && (!s.ReadOnly || s.User != "10001:10001" || len(s.CapDrop) != 1 || len(s.Volumes) != 1) {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

// manifests reads the documents of deploy/kubernetes by Kubernetes' own types; a field that they don't have is an error.
func manifests(t *testing.T) (all map[string]any) {
	t.Helper()
	paths, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	if err != nil || len(paths) != 4 {
		t.Fatalf("%q %v", paths, err)
	}
	all = map[string]any{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split(string(raw), "\n---\n") {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(text), &head); err != nil {
				t.Fatal(err)
			}
			into := map[string]any{"Namespace": new(corev1.Namespace), "ConfigMap": new(corev1.ConfigMap), "Secret": new(corev1.Secret),
				"Service": new(corev1.Service), "Deployment": new(appsv1.Deployment),
				"PodDisruptionBudget": new(policyv1.PodDisruptionBudget)}[head.Kind]
			if into == nil {
				t.Fatalf("%s: kind %q", path, head.Kind)
			}
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Errorf("%s, %s: %v", path, head.Kind, err)
			}
			all[head.Kind+"/"+head.Metadata.Name] = into
		}
	}
	return all
}

// The manifests fit together: nodes that drain for as long as they are given, media nodes on the host's network, budgets that let one go.
func TestKubernetes(t *testing.T) {
	all := manifests(t)
	for name, drain := range map[string]time.Duration{"parley-api": 5 * time.Minute, "parley-media": time.Hour} {
		d, ok := all["Deployment/"+name].(*appsv1.Deployment)
		if !ok {
			t.Fatalf("no %s", name)
		}
		pod := d.Spec.Template.Spec
		c := pod.Containers[0]
		if pod.HostNetwork != (name == "parley-media") || time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second <= drain ||
			*pod.SecurityContext.RunAsUser != imageUser || !*c.SecurityContext.ReadOnlyRootFilesystem ||
			c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" {
			t.Errorf("%s: %+v", name, pod)
		}
		set := map[string]string{}
		for _, e := range c.Env {
			set[e.Name] = e.Value
		}
		if got, err := time.ParseDuration(set["PARLEY_DRAIN"]); err != nil || got != drain {
			t.Errorf("%s drains for %q", name, set["PARLEY_DRAIN"])
		}
		labels := d.Spec.Template.Labels
		for kind, selector := range map[string]map[string]string{"Deployment": d.Spec.Selector.MatchLabels,
			"budget":  all["PodDisruptionBudget/"+name].(*policyv1.PodDisruptionBudget).Spec.Selector.MatchLabels,
			"service": all["Service/"+strings.TrimSuffix(name, "-api")].(*corev1.Service).Spec.Selector} {
			for k, v := range selector {
				if labels[k] != v {
					t.Errorf("%s: the %s selects %s=%s", name, kind, k, v)
				}
			}
		}
	}
}

// A layer is a whole archive, with its end: readers that are stricter than Go's refuse one without.
func TestLayersAreWhole(t *testing.T) {
	t.Chdir("../..")
	r := &release{date: commitDate}
	program, root := filepath.Join(t.TempDir(), "parley"), t.TempDir()
	for _, name := range []string{program, filepath.Join(root, "file")} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	above, err := r.programLayer(program)
	if err != nil {
		t.Fatal(err)
	}
	below, err := r.baseLayer(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, layer := range map[string][]byte{"program": above, "base": below} {
		if len(layer)%512 != 0 || !bytes.HasSuffix(layer, make([]byte, 1024)) {
			t.Errorf("%s: %d bytes, without the two empty blocks at the end", name, len(layer))
		}
		cmd := exec.Command("tar", "-t")
		cmd.Stdin = bytes.NewReader(layer)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
}
