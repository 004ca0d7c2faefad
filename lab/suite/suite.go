// Package suite is the language of experiments: it reads a YAML document,
// refuses what is wrong with file, line, column and remedy, and expands the rest
// into a Plan. It is pure: no file, clock, socket or kernel.
package suite

// Suite is a suite file that has been read and found right.
type Suite struct {
	Name        string
	Title       string
	Description string

	file  string
	lines []string
	spec  spec
}

// Parse reads a suite. name is what messages call the file. The error is an
// Errors with everything that is wrong, each with its line.
//
// Parse does not check the names of systems and tools. Expand does, with the
// names that it is given.
func Parse(name string, data []byte) (*Suite, error) {
	return ParseFor(name, data, Vocabulary{})
}

// ParseFor is Parse with a list of the existing systems. Then a misspelt system
// is an error at its own line. Parse would report the comparison that has the
// right name.
func ParseFor(name string, data []byte, known Vocabulary) (*Suite, error) {
	j := &journal{file: name}
	root := document(j, data, suiteLanguage)
	if root == nil {
		return nil, j.result()
	}
	// Names and references can be judged only where they could be read: errors
	// elsewhere in the file do not hide theirs.
	s := &Suite{file: name}
	s.spec, _ = suiteTable.read(j, root)
	s.lines = j.lines
	checkWorkloads(j, &s.spec)
	checkFabrics(j, &s.spec)
	checkEndpoints(j, &s.spec)
	checkStop(j, &s.spec)
	if checkScenarios(j, &s.spec) && checkSystems(j, &s.spec, known.Systems) {
		expand(j, &s.spec, ExpandOptions{})
		checkShortForm(j, &s.spec)
	}
	if err := j.result(); err != nil {
		return nil, err
	}
	s.Name, s.Title, s.Description = s.spec.name.V, s.spec.title.V, s.spec.description.V
	if s.Title == "" {
		s.Title = s.Name
	}
	return s, nil
}
