package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Create and list policies, which filter the traffic of workloads",
		Example: `  vrouter policy create web --rule "ingress allow tcp 80" --rule "ingress allow icmp"
  vrouter policy get web`,
	}
	kind := objects[model.Policy]{
		noun: "policy", all: (*api.Client).Policies, name: func(p model.Policy) string { return p.Name },
		table: policyTable, fields: policyFields, complete: completePolicies, put: (*api.Client).PutPolicy, remove: (*api.Client).DeletePolicy,
	}
	cmd.AddCommand(policyCreateCommand(kind), kind.list(), kind.get(), kind.delete("Delete policies that no network or port uses"))
	return cmd
}

func policyCreateCommand(kind objects[model.Policy]) *cobra.Command {
	var p model.Policy
	cmd := kind.create(&cobra.Command{
		Use:   "create NAME --rule RULE…",
		Short: "Create a policy or replace its rules",
		Long: `Creates a policy. The first rule that matches a packet decides. A rule is

  ingress|egress allow|deny [PROTOCOL [PORT|FIRST-LAST]] [from|to PREFIX] [log]

Directions are those of the workload: it receives ingress and sends egress. A packet
that matches no rule is denied if the policy has a rule for its direction, else
allowed. Replies of allowed flows are allowed.`,
		Example: `  vrouter policy create web --rule "ingress allow tcp 80-443 from 10.1.0.0/16" --rule "egress deny udp 53 log"`,
	}, &p, &p.Name, func() string { return "has " + phrase.Count(len(p.Rules), "rule") })
	cmd.Flags().Func("rule", "Add this `rule`; the first match decides (repeatable)", func(text string) error {
		r, err := parseRule(text)
		p.Rules = append(p.Rules, r)
		return err
	})
	cmd.MarkFlagRequired("rule")
	return cmd
}

// remoteWord is the word before a rule's prefix.
var remoteWord = map[model.Direction]string{model.Ingress: "from", model.Egress: "to"}

// parseRule parses the text of a rule.
func parseRule(text string) (r model.Rule, err error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return r, fmt.Errorf("the rule is too short; write one such as \"ingress allow tcp 80 from 10.1.0.0/16\"")
	}
	r.Direction, r.Action = model.Direction(words[0]), model.Action(words[1])
	for i := 2; i < len(words); i++ {
		switch word := words[i]; {
		case word == "log":
			r.Log = true
		case word == "from" || word == "to":
			if is := remoteWord[r.Direction]; is != "" && word != is {
				return r, fmt.Errorf("an %s rule uses %q, not %q", r.Direction, is, word)
			}
			if i++; i == len(words) {
				return r, fmt.Errorf("%q needs a prefix after it", word)
			}
			if r.Remote.IsValid() {
				return r, fmt.Errorf("a rule has one prefix; write another rule for %s", words[i])
			}
			if r.Remote, err = parsePrefix(words[i]); err != nil {
				return r, err
			}
		case r.Protocol == "":
			r.Protocol = word
		case r.Ports == "":
			r.Ports = word
		default:
			return r, fmt.Errorf("%q is unexpected; a rule is DIRECTION ACTION PROTOCOL PORTS from|to PREFIX log", word)
		}
	}
	return r, nil
}

// ruleText formats a rule in the syntax of parseRule.
func ruleText(r model.Rule) string {
	words := []string{string(r.Direction), string(r.Action)}
	for _, word := range []string{r.Protocol, r.Ports} {
		if word != "" {
			words = append(words, word)
		}
	}
	if r.Remote.IsValid() {
		words = append(words, remoteWord[r.Direction], r.Remote.String())
	}
	if r.Log {
		words = append(words, "log")
	}
	return strings.Join(words, " ")
}

func policyTable(rows []model.Policy) inspect.Table {
	t := inspect.Table{
		Empty:   "no policies; create one with `vrouter policy create`",
		Columns: []inspect.Column{{Name: "Policy"}, {Name: "Rules", Least: 20}},
	}
	for _, p := range rows {
		rules := lists.Map(p.Rules, ruleText)
		t.Add(p.Name, dash(strings.Join(rules, "; ")))
	}
	return t
}

func policyFields(p model.Policy) (fields inspect.Fields) {
	fields.Add("Policy", p.Name)
	for _, r := range p.Rules {
		fields.Add("Rule", ruleText(r))
	}
	return fields
}
