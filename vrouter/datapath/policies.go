package datapath

// moreRulesTable holds the rules of policies after their first rules.
type moreRulesTable struct {
	table[vrouterRulesKey, vrouterRuleChunk]
}

// remove waits for the programs that still evaluate the replaced policies.
func (t moreRulesTable) remove(keys []vrouterRulesKey) error {
	if len(keys) == 0 {
		return nil
	}
	awaitPrograms()
	return t.table.remove(keys)
}

func (t moreRulesTable) diff(have, want map[vrouterRulesKey]vrouterRuleChunk) (*difference[vrouterRulesKey, vrouterRuleChunk], error) {
	return diff(t, limit{t.name, t.m.MaxEntries(), false}, have, want)
}
