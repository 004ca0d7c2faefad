package compare

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// junit is the root of the report for CI systems: a suite for each gate, a case
// for each scenario and metric. Source: the format of Ant's JUnit task, as in
// the schema of Jenkins' xUnit plugin, which GitLab reads as well.
type junit struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Timestamp string      `xml:"timestamp,attr"` // start of run B, UTC
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string      `xml:"classname,attr"` // the scenario
	Name    string      `xml:"name,attr"`      // the metric
	Failure *junitText  `xml:"failure"`
	Error   *junitText  `xml:"error"`
	Skipped *junitText  `xml:"skipped"`
	Output  *junitLines `xml:"system-out"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

type junitLines struct {
	Text string `xml:",chardata"`
}

// WriteJUnit writes the results of the gates as a JUnit report. A row that fails
// its gate is a JUnit failure with both figures. A row that cannot be evaluated is
// a JUnit error. A row that passes only because the gate says `on_doubt: pass` is
// a skipped JUnit test with the reason.
func WriteJUnit(w io.Writer, c *Comparison) error {
	if c.Judgement == nil {
		return fmt.Errorf("write a JUnit report of %s and %s: no gate was judged; name a gate file with --gate", c.A.ID, c.B.ID)
	}
	root := junit{Name: fmt.Sprintf("windtunnel compare %s %s", xmlText(c.A.ID), xmlText(c.B.ID))}
	for _, g := range c.Judgement.Gates {
		s := junitSuite{Name: xmlText(g.Title), Timestamp: c.B.Started.UTC().Format("2006-01-02T15:04:05")}
		for _, f := range g.Findings {
			s.add(f)
		}
		root.Tests += s.Tests
		root.Failures += s.Failures
		root.Errors += s.Errors
		root.Skipped += s.Skipped
		root.Suites = append(root.Suites, s)
	}
	text, err := xml.MarshalIndent(root, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	}
	if err != nil {
		return fmt.Errorf("write the JUnit report: %w", err)
	}
	return nil
}

func (s *junitSuite) add(f Finding) {
	c := junitCase{Class: xmlText(f.Scenario), Name: xmlText(string(f.Metric))}
	text := xmlText(f.Text)
	s.Tests++
	switch f.Outcome {
	case Failed:
		s.Failures++
		c.Failure = &junitText{Message: text, Type: "regression", Text: text}
	case Unjudged:
		s.Errors++
		c.Error = &junitText{Message: text, Type: "not judged", Text: text}
	case Doubtful:
		s.Skipped++
		c.Skipped = &junitText{Message: text}
	default:
		c.Output = &junitLines{text}
	}
	s.Cases = append(s.Cases, c)
}

// xmlText replaces characters that XML 1.0 cannot represent.
func xmlText(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return unicode.ReplacementChar
		}
		return c
	}, s)
}
