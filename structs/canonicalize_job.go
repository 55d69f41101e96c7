package structs

import "time"

// Canonicalize brings a job into the form in which the servers keep it: every default of the public jobspec
// documentation filled in (SetDefaults), and what follows from the job added: the constraints that its services,
// networks, signals and secrets imply, the sidecar task of a Connect service, each task's default identity. It is
// idempotent. Validate expects it.
func (j *Job) Canonicalize() {
	j.SetDefaults()
	j.keepServerForm()
	for _, tg := range j.TaskGroups {
		tg.addConnectTasks(j)
		tg.addImpliedConstraints()
	}
}

// SetDefaults fills in every default of the public jobspec documentation and nothing else. Afterwards all scalars
// that have a default are set.
func (j *Job) SetDefaults() {
	setDefault(&j.ID, "")
	inherit(&j.Name, j.ID)
	setDefault(&j.Type, JobTypeService)
	for _, field := range []struct {
		field **string
		value string
	}{
		{&j.Region, DefaultRegion}, {&j.Namespace, DefaultNamespace}, {&j.NodePool, NodePoolDefault},
		{&j.ConsulNamespace, ""}, {&j.VaultNamespace, ""},
	} {
		setDefault(field.field, field.value)
		if **field.field == "" {
			*field.field = Ptr(field.value)
		}
	}
	setDefault(&j.AllAtOnce, false)
	if Val(j.Priority) == 0 {
		j.Priority = Ptr(JobDefaultPriority)
	}
	if len(j.Datacenters) == 0 {
		j.Datacenters = []string{"*"}
	}
	dropNil(&j.TaskGroups)
	setPlacementDefaults(&j.Constraints, &j.Affinities, &j.Spreads)
	j.Periodic.setDefaults()
	if p := j.ParameterizedJob; p != nil && p.Payload == "" {
		p.Payload = PayloadOptional
	}
	if j.UI != nil {
		dropNil(&j.UI.Links)
	}
	if j.Multiregion != nil {
		dropNil(&j.Multiregion.Regions)
	}
	for _, tg := range j.TaskGroups {
		tg.setDefaults(j)
	}
}

// keepServerForm gives up what the servers do not keep: policies of the job that its groups have inherited, and older
// names of fields. Of the job's update strategy the two oldest fields stay, since tools still read them.
func (j *Job) keepServerForm() {
	j.Reschedule = nil
	j.Migrate = nil
	for _, tg := range j.TaskGroups {
		tg.MaxClientDisconnect = nil
		tg.StopAfterClientDisconnect = nil
		tg.PreventRescheduleOnLost = Ptr(false)
	}
	stagger, parallel := time.Duration(0), 0
	if u := defaultsOf(*j.Type).update; u != nil {
		strategy := &UpdateStrategy{}
		strategy.fill(j.Update)
		strategy.fill(u)
		if *strategy.MaxParallel > 0 {
			stagger, parallel = *strategy.Stagger, *strategy.MaxParallel
		}
	}
	if j.Update.isSet() && defaultsOf(*j.Type).update == nil {
		return // Validate refuses it
	}
	j.Update = &UpdateStrategy{
		Stagger: Ptr(stagger), MaxParallel: Ptr(parallel), HealthCheck: Ptr(""),
		MinHealthyTime: Ptr(time.Duration(0)), HealthyDeadline: Ptr(time.Duration(0)),
		ProgressDeadline: Ptr(time.Duration(0)), Canary: Ptr(0), AutoRevert: Ptr(false), AutoPromote: Ptr(false),
	}
}

// isSet says whether the strategy says anything: nil and the all-zero form of a canonical job do not.
func (u *UpdateStrategy) isSet() bool {
	return u != nil && (Val(u.Stagger) != 0 || Val(u.MaxParallel) != 0 || Val(u.HealthCheck) != "" ||
		Val(u.MinHealthyTime) != 0 || Val(u.HealthyDeadline) != 0 || Val(u.ProgressDeadline) != 0 ||
		Val(u.Canary) != 0 || Val(u.AutoRevert) || Val(u.AutoPromote))
}

// inheritable is what groups take over from the job's strategy. In the form that the servers keep, only the two
// oldest fields mean anything.
func (u *UpdateStrategy) inheritable() *UpdateStrategy {
	if u == nil || u.HealthCheck == nil || *u.HealthCheck != "" {
		return u
	}
	if Val(u.MaxParallel) == 0 {
		return &UpdateStrategy{MaxParallel: u.MaxParallel}
	}
	return &UpdateStrategy{Stagger: u.Stagger, MaxParallel: u.MaxParallel}
}

// setDefaults fills in a group; the job's own scalars are set.
func (tg *TaskGroup) setDefaults(j *Job) {
	d := defaultsOf(*j.Type)
	setDefault(&tg.Name, "")
	if tg.Count == nil && tg.Scaling != nil && tg.Scaling.Min != nil {
		tg.Count = Ptr(int(*tg.Scaling.Min))
	}
	setDefault(&tg.Count, 1)
	dropNil(&tg.Tasks)
	dropNil(&tg.Networks)
	setPlacementDefaults(&tg.Constraints, &tg.Affinities, &tg.Spreads)

	fillPolicy(&tg.RestartPolicy, nil, &d.restart)
	if d.reschedule == nil && tg.ReschedulePolicy.isZero() {
		tg.ReschedulePolicy = nil // clients of the API send one for every type of job
	}
	fillPolicy(&tg.ReschedulePolicy, j.Reschedule, d.reschedule)
	fillPolicy(&tg.Migrate, j.Migrate, d.migrate)
	if d.update != nil || tg.Update != nil {
		fillPolicy(&tg.Update, j.Update.inheritable(), d.update)
	}
	if tg.EphemeralDisk == nil {
		tg.EphemeralDisk = &EphemeralDisk{}
	}
	setDefault(&tg.EphemeralDisk.Sticky, false)
	setDefault(&tg.EphemeralDisk.Migrate, false)
	setDefault(&tg.EphemeralDisk.SizeMB, DefaultEphemeralDiskMB)
	setDefault(&tg.PreventRescheduleOnLost, false)
	if dc := tg.Disconnect; dc != nil {
		setDefault(&dc.LostAfter, 0)
		setDefault(&dc.Replace, true)
		setDefault(&dc.Reconcile, ReconcileBestScore)
	}
	if tg.Consul != nil {
		orDefault(&tg.Consul.Cluster, defaultCluster)
	}
	for _, n := range tg.Networks {
		n.setDefaults()
	}
	for name, v := range tg.Volumes {
		if v != nil {
			orDefault(&v.Name, name)
		}
	}
	tg.Scaling.setDefaults(j, tg, nil)
	dropNil(&tg.Services)
	for _, s := range tg.Services {
		s.setDefaults(j, tg, nil)
	}
	for _, t := range tg.Tasks {
		t.setDefaults(j, tg)
	}
}

// isZero says whether a policy is there and says nothing.
func (p *ReschedulePolicy) isZero() bool {
	return p != nil && Val(p.Attempts) == 0 && Val(p.Interval) == 0 && Val(p.Delay) == 0 && Val(p.DelayFunction) == "" &&
		Val(p.MaxDelay) == 0 && !Val(p.Unlimited)
}

// policy is a block that can take over from another one what it leaves out.
type policy[T any] interface {
	*T
	fill(*T)
}

// fillPolicy completes a policy of a group from the job's and from the default of the job's type. Where neither the
// user nor the type has one, there is none.
func fillPolicy[T any, P policy[T]](field **T, fromJob, fromType *T) {
	if *field == nil && fromJob == nil && fromType == nil {
		return
	}
	if *field == nil {
		*field = new(T)
	}
	P(*field).fill(fromJob)
	P(*field).fill(fromType)
}

func (n *NetworkResource) setDefaults() {
	for _, ports := range [2][]Port{n.ReservedPorts, n.DynamicPorts} {
		for i := range ports {
			orDefault(&ports[i].HostNetwork, defaultHostNetwork)
		}
	}
}

func (p *PeriodicConfig) setDefaults() {
	if p == nil {
		return
	}
	setDefault(&p.Enabled, true)
	setDefault(&p.ProhibitOverlap, false)
	setDefault(&p.Spec, "")
	setDefault(&p.SpecType, PeriodicSpecCron)
	setDefault(&p.TimeZone, "UTC")
	if *p.TimeZone == "" {
		p.TimeZone = Ptr("UTC")
	}
	if p.Specs == nil {
		p.Specs = []string{}
	}
}

// setDefaults fills in the scaling policy of a group, or with t of a task.
func (p *ScalingPolicy) setDefaults(j *Job, tg *TaskGroup, t *Task) {
	if p == nil {
		return
	}
	setDefault(&p.Enabled, true)
	if t == nil {
		orDefault(&p.Type, ScalingHorizontal)
		setDefault(&p.Min, int64(*tg.Count))
		p.Target = map[string]string{"Namespace": *j.Namespace, "Job": *j.ID, "Group": *tg.Name}
		return
	}
	setDefault(&p.Min, 0)
	p.Target = map[string]string{"Namespace": *j.Namespace, "Job": *j.ID, "Group": *tg.Name, "Task": t.Name}
}

// setPlacementDefaults fills in the weights of affinities and spreads.
func setPlacementDefaults(constraints *[]*Constraint, affinities *[]*Affinity, spreads *[]*Spread) {
	dropNil(constraints)
	for _, c := range *constraints {
		orDefault(&c.Operand, "=")
	}
	dropNil(affinities)
	for _, a := range *affinities {
		orDefault(&a.Operand, "=")
		setDefault(&a.Weight, DefaultAffinityWeight)
	}
	if spreads == nil {
		return
	}
	dropNil(spreads)
	for _, s := range *spreads {
		dropNil(&s.SpreadTarget)
		setDefault(&s.Weight, DefaultSpreadWeight)
	}
}

// dropNil removes the nil entries of a list, which a request body can hold and nothing could be done with.
func dropNil[T any](list *[]*T) {
	kept := (*list)[:0]
	for _, v := range *list {
		if v != nil {
			kept = append(kept, v)
		}
	}
	*list = kept
}
