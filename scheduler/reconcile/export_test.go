package reconcile

// RuleNames gives the names of all rules, so that a test can see which of them no scenario reaches.
func RuleNames() []string {
	var names []string
	for i := range rules {
		names = append(names, rules[i].name)
	}
	for i := range systemRules {
		names = append(names, "system: "+systemRules[i].name)
	}
	for i := range brakes {
		names = append(names, "brake: "+brakes[i].name)
	}
	return names
}
