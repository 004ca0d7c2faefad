package suite

import (
	"bytes"
	"encoding/json"
)

// Schema returns the JSON Schema (draft 2020-12) of the suite language, for editors.
// It is made from the tables that Parse uses, so both have the same keys. Only Parse
// checks some rules, such as undefined names.
func Schema() []byte {
	s := suiteTable.schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Windtunnel suite"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("suite: the schema cannot be encoded: " + err.Error()) // the tables hold nothing but JSON values
	}
	return b.Bytes()
}
