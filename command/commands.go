package command

import (
	"github.com/hashicorp/cli"
)

// commands lists every command by name; aliases are the ones which the public command line has.
func commands(s streams, program string) map[string]cli.CommandFactory {
	out := map[string]cli.CommandFactory{}
	add := func(c *spec, aliases ...string) {
		for _, name := range append([]string{c.name}, aliases...) {
			out[name] = func() (cli.Command, error) { return &runner{spec: c, streams: s}, nil }
		}
	}
	for _, g := range []struct{ name, synopsis string }{
		{"job", "Work with jobs"}, {"job tag", "Name versions of jobs"}, {"job periodic", "Work with periodic jobs"},
		{"alloc", "Work with allocations"},
		{"deployment", "Work with deployments"}, {"eval", "Work with evaluations"},
		{"node", "Work with nodes"}, {"node pool", "Work with node pools"}, {"node meta", "Work with metadata of nodes"},
		{"namespace", "Work with namespaces"}, {"system reconcile", "Repair what is counted"},
		{"server", "Work with servers"}, {"system", "Tend the cluster"},
		{"config", "Work with agent configuration"}, {"operator", "Tools for who runs the cluster"},
		{"operator scheduler", "The scheduler's configuration"},
		{"operator snapshot", "Save and restore the state"},
		{"scaling", "What autoscalers read"},
		{"scaling policy", "Work with scaling policies"}, {"service", "Work with registered services"},
	} {
		out[g.name] = func() (cli.Command, error) { return group{name: g.name, synopsis: g.synopsis, err: s.err}, nil }
	}
	add(agentCommand())
	add(jobRun(), "run")
	add(jobPlan(), "plan")
	add(jobStatus())
	add(jobStop(), "stop")
	add(jobStart(), "start")
	add(jobScale())
	add(jobRestart())
	add(jobInspect(), "inspect")
	add(jobValidate(), "validate")
	add(jobInit(), "init")
	add(jobHistory())
	add(jobRevert())
	add(jobTagApply())
	add(jobTagUnset())
	add(jobAllocs())
	add(jobEval())
	add(jobDeployments())
	add(jobPromote())
	add(jobScalingEvents())
	add(jobExplain())
	add(jobDispatch())
	add(jobPeriodicForce())
	add(jobAction(), "action")
	add(allocStatus(), "alloc-status")
	add(allocLogs(), "logs")
	add(allocStop())
	add(allocRestart())
	add(allocSignal())
	add(allocExec(), "exec")
	add(allocChecks())
	add(allocFS(), "fs")
	add(nodeStatus(), "node-status")
	add(nodeDrain(), "node-drain")
	add(nodeEligibility())
	add(nodeMaintenance())
	add(evalStatus(), "eval-status")
	add(evalList())
	add(evalDelete())
	add(namespaceList())
	add(namespaceStatus())
	add(namespaceInspect())
	add(namespaceApply())
	add(namespaceDelete())
	add(nodeConfig(), "client-config")
	add(nodeMetaApply())
	add(nodeMetaRead())
	add(nodePoolList())
	add(nodePoolInfo())
	add(nodePoolInit())
	add(nodePoolApply())
	add(nodePoolDelete())
	add(nodePoolJobs())
	add(nodePoolNodes())
	add(deploymentList())
	add(deploymentStatus())
	add(deploymentFail())
	add(deploymentPause())
	add(deploymentResume())
	add(deploymentPromote())
	add(deploymentUnblock())
	add(serviceList())
	add(serviceInfo())
	add(serviceDelete())
	addClusterCommands(add, program)
	return out
}

// addClusterCommands adds those about the cluster as a whole, and the tools.
func addClusterCommands(add func(c *spec, aliases ...string), program string) {
	add(serverMembers(), "server-members")
	add(status())
	add(version(program))
	add(systemGC())
	add(systemReconcileSummaries())
	add(configValidate())
	add(fmtCommand())
	add(agentInfo())
	add(agentCheck())
	for _, c := range operatorCommands() {
		add(c)
	}
	add(scalingPolicyList())
	add(scalingPolicyInfo())
}

// operatorCommands are those for who runs the cluster.
func operatorCommands() []*spec {
	return []*spec{schedulerGetConfig(), schedulerSetConfig(), operatorSim(), operatorMetrics(),
		snapshotSave(), snapshotRestore(), snapshotInspect(), snapshotState(), snapshotRedact()}
}
