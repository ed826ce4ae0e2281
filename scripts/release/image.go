package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	suite     = "bookworm" // the Debian release that the image is based on
	imageUser = 10001      // who the program runs as
	stateDir  = "var/lib/parley"
)

// dropped are paths of the base that no container needs, or that differ each time.
var dropped = []string{"dev", "proc", "sys", "boot", "tmp", "var/cache", "var/log", "var/tmp", "var/lib/apt", "usr/share/doc",
	"usr/share/man", "usr/share/info",
	"usr/share/locale", "usr/share/lintian", "etc/machine-id", "etc/resolv.conf", "etc/hostname", "etc/passwd-", "etc/shadow-", "etc/group-",
	"etc/gshadow-",
	"var/lib/dpkg/status-old", "var/lib/dpkg/available-old", "var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend", "var/lib/dpkg/triggers/Lock"}

// whyNoBase says why a Debian root can't be made here for an architecture; "" where it can.
func whyNoBase(arch string) string {
	switch _, err := exec.LookPath("debootstrap"); {
	case runtime.GOOS != "linux":
		return "it is built on Linux"
	case err != nil:
		return "there is no debootstrap"
	case os.Geteuid() != 0:
		return "debootstrap needs root"
	case arch == runtime.GOARCH:
		return ""
	}
	for _, program := range []string{"proot", emulators[arch]} {
		if _, err := exec.LookPath(program); err != nil {
			return "there is no " + program
		}
	}
	return ""
}

// emulators are the programs of qemu-user that run what is made for other architectures.
var emulators = map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}

// base makes the lowest layer: a small Debian with the speech packages, in a directory. The programs of another architecture, which
// configure its packages, run under an emulator.
func base(ctx context.Context, dir, arch string) error {
	packages := append([]string{"ca-certificates", "tzdata"}, recommended["deb"]...)
	args := []string{"--arch=" + arch, "--variant=minbase", "--include=" + strings.Join(packages, ",")}
	if arch != runtime.GOARCH {
		args = append(args, "--foreign")
	}
	cmd := exec.CommandContext(ctx, "debootstrap", append(args, suite, dir)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("debootstrap: %w\n%s", err, out[max(0, len(out)-2000):])
	}
	if arch != runtime.GOARCH {
		if err := secondStage(ctx, dir, arch); err != nil {
			return err
		}
	}
	for file, line := range map[string]string{"passwd": fmt.Sprintf("parley:x:%d:%d::/%s:/usr/sbin/nologin\n", imageUser, imageUser, stateDir),
		"group": fmt.Sprintf("parley:x:%d:\n", imageUser)} {
		f, err := os.OpenFile(filepath.Join(dir, "etc", file), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, line)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// secondStage configures the packages of another architecture.
func secondStage(ctx context.Context, dir, arch string) error {
	// debootstrap links /proc to itself when it runs in a container
	proc := filepath.Join(dir, "proc")
	if err := errors.Join(os.RemoveAll(proc), os.Mkdir(proc, 0o755)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "proot", "-q", emulators[arch], "-0", "-r", dir, "-b", "/proc", "-b", "/dev", "-w", "/",
		"/debootstrap/debootstrap", "--second-stage")
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "DEBOOTSTRAP_DIR=/debootstrap"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("debootstrap's second stage: %w\n%s", err, out[max(0, len(out)-2000):])
	}
	return nil
}

// baseLayer packs a root: in the order of names, with one time for all files and without what differs each time.
func (r *release) baseLayer(root string) ([]byte, error) {
	var out bytes.Buffer
	tape := tar.NewWriter(&out)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		away := slices.ContainsFunc(dropped, func(d string) bool { return name == d || strings.HasPrefix(name, d+"/") })
		switch {
		case away && e.IsDir() && slices.Contains(dropped, name): // it stays, empty
		case away, e.Name() == "__pycache__", strings.Contains(name, "/__pycache__/"), name == "debootstrap",
			strings.HasPrefix(name, "debootstrap/"):
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(path); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeSymlink {
			return err
		}
		if h.Name = name; h.Typeflag == tar.TypeDir {
			h.Name += "/"
		}
		if away { // as the machine that builds has it, it differs: /sys may only be read, or written too
			h.Mode = 0o755
			if e.Name() == "tmp" {
				h.Mode = 0o1777
			}
		}
		h.ModTime, h.AccessTime, h.ChangeTime, h.Uname, h.Gname, h.Format = r.date, time.Time{}, time.Time{}, "", "", tar.FormatPAX
		if err := tape.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(tape, f)
		return errors.Join(err, f.Close())
	})
	err = errors.Join(err, tape.Close()) // it writes the end, which the bytes must have
	return out.Bytes(), err
}

// programLayer packs the program, its papers and the directory of its data.
func (r *release) programLayer(program string) ([]byte, error) {
	var out bytes.Buffer
	tape := tar.NewWriter(&out)
	err := tape.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: stateDir + "/", Mode: 0o700, Uid: imageUser, Gid: imageUser,
		ModTime: r.date, Format: tar.FormatPAX})
	for _, f := range []struct {
		from, to string
		mode     int64
	}{{program, "usr/bin/parley", 0o755}, {"LICENSE", "usr/share/doc/parley/LICENSE", 0o644},
		{"NOTICE", "usr/share/doc/parley/NOTICE", 0o644}} {
		text, e := os.ReadFile(f.from)
		if err = errors.Join(err, e); err != nil {
			return nil, err
		}
		if err := tape.WriteHeader(
			&tar.Header{Name: f.to, Mode: f.mode, Size: int64(len(text)), ModTime: r.date, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := tape.Write(text); err != nil {
			return nil, err
		}
	}
	err = errors.Join(err, tape.Close()) // it writes the end, which the bytes must have
	return out.Bytes(), err
}

// imageOf is the image for one architecture, of the layers from below.
func (r *release) imageOf(arch string, layers ...[]byte) (v1.Image, error) {
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	for i, raw := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil },
			tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		by := []string{"Debian " + suite + " with the speech packages", "parley " + r.version.full}[i]
		if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: by}}); err != nil {
			return nil, err
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: r.date}
	config.Config = v1.Config{User: fmt.Sprintf("%d:%d", imageUser, imageUser), Entrypoint: []string{"/usr/bin/parley"},
		Cmd: []string{"serve"},
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "PARLEY_DATA=/" + stateDir, "PARLEY_LISTEN=0.0.0.0:8080",
			"PARLEY_SIP_LISTEN=0.0.0.0:5060", "PARLEY_WEBRTC_LISTEN=0.0.0.0:8189"},
		WorkingDir: "/" + stateDir, Volumes: map[string]struct{}{"/" + stateDir: {}}, StopSignal: "SIGTERM",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "5060/udp": {}, "5060/tcp": {}, "8189/udp": {}, "8189/tcp": {}},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/parley", "ready"}, Interval: 30 * time.Second, Timeout: 5 * time.Second,
			StartPeriod: time.Minute, Retries: 3},
		Labels: map[string]string{"org.opencontainers.image.title": "Parley", "org.opencontainers.image.version": r.version.full,
			"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.description": "Voice and chat assistants on your own server"}}
	return mutate.ConfigFile(img, config)
}

// image writes an OCI layout of the image for the architectures for which a base can be made here, and says of the others why not.
func (r *release) image(ctx context.Context, work string, programs map[string]string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	built := 0
	for _, arch := range []string{"amd64", "arm64"} {
		program := programs[arch]
		if program == "" {
			continue
		}
		if why := whyNoBase(arch); why != "" {
			log.Printf("not built: the image for linux-%s: %s. deploy/Dockerfile builds it with a container engine", arch, why)
			continue
		}
		began := time.Now()
		root := filepath.Join(work, "root-"+arch)
		if err := base(ctx, root, arch); err != nil {
			log.Printf("not built: the image for linux-%s: %v", arch, err)
			continue
		}
		img, err := r.layered(arch, root, program)
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1,
			Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
		built++
		log.Printf("%-14s %s", "image "+arch, time.Since(began).Round(time.Second))
	}
	if built == 0 {
		return nil
	}
	return r.writeImage(index, filepath.Join(r.dist, "parley-"+r.version.full+"-oci.tar"))
}

// layered is the image of a root and a program.
func (r *release) layered(arch, root, program string) (v1.Image, error) {
	below, err := r.baseLayer(root)
	if err != nil {
		return nil, err
	}
	above, err := r.programLayer(program)
	if err != nil {
		return nil, err
	}
	return r.imageOf(arch, below, above)
}

// writeImage writes an index as the tar file of an OCI layout, as `podman load` and `skopeo copy oci-archive:` read it.
func (r *release) writeImage(index v1.ImageIndex, to string) error {
	dir, err := os.MkdirTemp("", "layout")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index,
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version.full})); err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	tape := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		if err = errors.Join(err, relErr); err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := tape.WriteHeader(
			&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: r.date, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err = tape.Write(text)
		return err
	})
	return errors.Join(err, tape.Close(), f.Close())
}

// flatten writes the files of an image for an architecture as one tar stream, as a container sees them.
func flatten(from, arch string, to io.Writer) error {
	dir, err := os.MkdirTemp("", "layout")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("tar", "-xf", from, "-C", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	img, err := imageIn(dir, arch)
	if err != nil {
		return err
	}
	files := mutate.Extract(img)
	defer files.Close()
	_, err = io.Copy(to, files)
	return err
}

// imageIn is the image for an architecture in the directory of a layout.
func imageIn(dir, arch string) (v1.Image, error) {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	list, err := top.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		return nil, fmt.Errorf("the layout has %d images, %w", len(list.Manifests), err)
	}
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	if list, err = index.IndexManifest(); err != nil {
		return nil, err
	}
	for _, m := range list.Manifests {
		if m.Platform != nil && m.Platform.Architecture == arch {
			return index.Image(m.Digest)
		}
	}
	return nil, fmt.Errorf("there is no image for %s", arch)
}
