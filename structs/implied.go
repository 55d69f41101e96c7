package structs

import (
	"maps"
	"slices"
	"strings"
)

// bridgePlugins are the CNI plugins that a node needs to build a bridge network.
func bridgePlugins() []string {
	return []string{"bridge", "firewall", "host-local", "loopback", "portmap"}
}

// addImpliedConstraints adds to a group and its tasks the constraints that follow from what they use, so that no node
// is picked which cannot run them. A constraint that is there already is not added again.
func (tg *TaskGroup) addImpliedConstraints() {
	consul := Constraint{LTarget: "${attr.consul.version}", Operand: ConstraintSemver, RTarget: ">= 1.8.0"}
	if usesProvider(tg.Services, ServiceProviderConsul) {
		addConstraint(&tg.Constraints, consul)
	}
	nomad, checks := usesProvider(tg.Services, ServiceProviderNomad), hasNomadChecks(tg.Services)
	identities := hasIdentity(tg.Services)
	signals, secrets := map[string]bool{}, map[string]bool{}
	for _, t := range tg.Tasks {
		if usesProvider(t.Services, ServiceProviderConsul) {
			addConstraint(&t.Constraints, consul)
		}
		nomad = nomad || usesProvider(t.Services, ServiceProviderNomad)
		checks = checks || hasNomadChecks(t.Services)
		identities = identities || len(t.Identities) > 0 || hasIdentity(t.Services)
		t.collectSignals(signals)
		for _, s := range t.Secrets {
			secrets[s.Provider] = true
		}
	}
	if nomad {
		addConstraint(&tg.Constraints, Constraint{LTarget: "${attr.nomad.service_discovery}", Operand: "=", RTarget: "true"})
	}
	if checks {
		addConstraint(&tg.Constraints, nomadAtLeast("1.4.0"))
	}
	if identities {
		addConstraint(&tg.Constraints, nomadAtLeast("1.7.0-a"))
	}
	if slices.ContainsFunc(tg.Networks, func(n *NetworkResource) bool { return n.Mode == NetworkModeBridge }) {
		for _, plugin := range bridgePlugins() {
			addConstraint(&tg.Constraints, Constraint{
				LTarget: "${attr.plugins.cni.version." + plugin + "}", Operand: ConstraintSemver, RTarget: ">= 0.4.0"})
		}
	}
	if len(signals) > 0 {
		addConstraint(&tg.Constraints, Constraint{LTarget: "${attr.os.signals}", Operand: ConstraintSetContains,
			RTarget: strings.Join(slices.Sorted(maps.Keys(signals)), ",")})
	}
	for _, provider := range slices.Sorted(maps.Keys(secrets)) {
		if provider != "" {
			addConstraint(&tg.Constraints, Constraint{
				LTarget: "${attr.plugins.secrets." + provider + ".version}", Operand: ConstraintAttributeIsSet})
		}
	}
}

func nomadAtLeast(version string) Constraint {
	return Constraint{LTarget: "${attr.nomad.version}", Operand: ConstraintSemver, RTarget: ">= " + version}
}

func addConstraint(list *[]*Constraint, c Constraint) {
	for _, have := range *list {
		if *have == c {
			return
		}
	}
	*list = append(*list, &c)
}

func usesProvider(services []*Service, provider string) bool {
	return slices.ContainsFunc(services, func(s *Service) bool { return s.Provider == provider })
}

func hasNomadChecks(services []*Service) bool {
	return slices.ContainsFunc(services, func(s *Service) bool {
		return s.Provider == ServiceProviderNomad && len(s.Checks) > 0
	})
}

func hasIdentity(services []*Service) bool {
	return slices.ContainsFunc(services, func(s *Service) bool { return s.Identity != nil })
}

// collectSignals adds the signals which the task wants to be sent.
func (t *Task) collectSignals(signals map[string]bool) {
	add := func(signal string) {
		if signal != "" {
			signals[strings.ToUpper(signal)] = true
		}
	}
	add(t.KillSignal)
	for _, tpl := range t.Templates {
		if *tpl.ChangeMode == ChangeModeSignal {
			add(*tpl.ChangeSignal)
		}
	}
	if t.Vault != nil && *t.Vault.ChangeMode == ChangeModeSignal {
		add(*t.Vault.ChangeSignal)
	}
}
