package main

import (
	"io"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// debTypes are nfpm's names of the kinds of files.
var debTypes = map[kind]string{plain: files.TypeFile, conffile: files.TypeConfig, link: files.TypeSymlink}

// writeDeb writes a Debian package.
func (r *release) writeDeb(w io.Writer, p product, b binary, contents []file) error {
	info := &nfpm.Info{
		Name: p.name, Arch: b.arch, Platform: "linux",
		Version: b.version, VersionSchema: "none", // not to be changed to a semantic version
		Section: "net", Priority: "optional", Maintainer: r.maintainer, Description: p.description,
		DisableGlobbing: true, MTime: r.time,
	}
	info.Recommends, info.Suggests = p.recommends, p.suggests
	for _, f := range contents {
		if f.kind == imageOnly {
			continue
		}
		info.Contents = append(info.Contents, &files.Content{
			Source: f.from, Destination: f.to, Type: debTypes[f.kind],
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.time},
		})
	}
	if p.scripts != "" {
		dir := filepath.Join(r.tree, p.scripts)
		info.Scripts = nfpm.Scripts{
			PostInstall: filepath.Join(dir, "postinst"), PreRemove: filepath.Join(dir, "prerm"), PostRemove: filepath.Join(dir, "postrm"),
		}
	}
	return deb.Default.Package(nfpm.WithDefaults(info), w)
}
