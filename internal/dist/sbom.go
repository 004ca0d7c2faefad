package main

import (
	"io"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sumProperty is the name of the property with a module's h1 sum. The sum is no hash of one
// file, so it cannot be a component's hash.
const sumProperty = "windtunnel:go:h1"

// writeSBOM writes the modules of a binary as CycloneDX 1.6.
func (r *release) writeSBOM(w io.Writer, b binary) error {
	std := strings.TrimPrefix(b.goVersion, "go")
	components := []cdx.Component{r.component("std", std, "", standard)}
	for _, m := range b.modules {
		components = append(components, r.component(m.path, m.version, m.sum, m.key))
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	own := "pkg:generic/" + b.name + "@" + b.version + "?arch=" + b.arch
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.time.Format(time.RFC3339),
		Tools:     &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "windtunnel/internal/dist", Version: r.revision}}},
		Component: &cdx.Component{
			BOMRef: own, Type: cdx.ComponentTypeApplication, Name: b.name, Version: b.version, PackageURL: own,
			Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: b.sha256}},
			Licenses: licences([]string{ownLicence}),
		},
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: own, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// component describes a module.
func (r *release) component(path, version, sum, key string) cdx.Component {
	url := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := cdx.Component{
		BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url,
		Scope: cdx.ScopeRequired, Licenses: licences(r.licences[key].ids),
	}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: sumProperty, Value: sum}}
	}
	return c
}

// licences returns SPDX identifiers as CycloneDX has them.
func licences(ids []string) *cdx.Licenses {
	if len(ids) == 0 {
		return nil
	}
	var all cdx.Licenses
	for _, id := range ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}
