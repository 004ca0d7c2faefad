package main

import "strings"

// phrases identify the licences of Go modules: a text has a licence if it contains all phrases
// and none of the phrases in not. Spaces, line ends and marks of quotations count as one space,
// and letters as small.
var phrases = []struct {
	id  string
	all []string
	not []string
}{
	{id: "Apache-2.0", all: []string{"apache license version 2.0, january 2004", "grant of patent license"}},
	{id: "MPL-2.0", all: []string{"mozilla public license version 2.0", "covered software"}},
	{id: "MIT", all: []string{"permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files", "the above copyright notice and this permission notice shall be included in all copies or substantial portions"}},
	{id: "ISC", all: []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies"}},
	{id: "BSD-3-Clause", all: []string{redistribution, "in binary form must reproduce", "endorse or promote products derived from this software without specific prior"}, not: []string{advertising}},
	{id: "BSD-2-Clause", all: []string{redistribution, "in binary form must reproduce"}, not: []string{advertising, "endorse or promote"}},
	{id: "Unlicense", all: []string{"this is free and unencumbered software released into the public domain"}},
}

const (
	redistribution = "redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met"
	advertising    = "all advertising materials mentioning features" // BSD-4-Clause
)

// identify returns the SPDX identifiers of the licences in a text.
func identify(text string) []string {
	text = strings.ToLower(strings.Join(strings.Fields(strings.ReplaceAll(text, "\n>", "\n")), " "))
	has := func(phrase string) bool { return strings.Contains(text, phrase) }
	var ids []string
licences:
	for _, l := range phrases {
		for _, phrase := range l.all {
			if !has(phrase) {
				continue licences
			}
		}
		for _, phrase := range l.not {
			if has(phrase) {
				continue licences
			}
		}
		ids = append(ids, l.id)
	}
	return ids
}
