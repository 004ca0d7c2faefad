// Package suite is the language of experiments. It parses a YAML document, reports
// mistakes with file, line, column and remedy, and expands the document into a Plan.
// It is pure: it uses no file, clock, socket or kernel.
package suite

// Suite is a parsed and valid suite file.
type Suite struct {
	Name        string
	Title       string
	Description string

	file  string
	lines []string
	spec  spec
}

// Parse parses a suite. name is the name of the file in messages. The error is an
// Errors with all mistakes, each with its line.
//
// Parse accepts all names of systems and tools. Expand checks these names.
func Parse(name string, data []byte) (*Suite, error) {
	return ParseFor(name, data, ExpandOptions{})
}

// ParseFor is Parse with the options for Expand. It reports names of systems and tools that
// are not in the vocabulary.
func ParseFor(name string, data []byte, opts ExpandOptions) (*Suite, error) {
	j := &journal{file: name}
	root := document(j, data, suiteLanguage)
	if root == nil {
		return nil, j.result()
	}
	// Check all names and references that could be read. A mistake elsewhere in the
	// file must not hide their mistakes.
	s := &Suite{file: name}
	s.spec, _ = suiteKeys.read(j, root)
	s.lines = j.lines
	checkWorkloads(j, &s.spec)
	checkFabrics(j, &s.spec)
	checkEndpoints(j, &s.spec)
	checkStop(j, &s.spec)
	checkScenarios(j, &s.spec)
	expand(j, &s.spec, ExpandOptions{}, checkVocabulary(j, &s.spec, opts.withShortForm(&s.spec)))
	checkShortForm(j, &s.spec)
	if err := j.result(); err != nil {
		return nil, err
	}
	s.Name, s.Title, s.Description = s.spec.name.V, s.spec.title.V, s.spec.description.V
	if s.Title == "" {
		s.Title = s.Name
	}
	return s, nil
}
