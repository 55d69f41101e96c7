package structs

// diffRule is what is special about one field in differences. Without a rule a field is compared by its type under
// its own name, so that none can be forgotten.
type diffRule struct {
	name string   // as differences show it
	skip string   // why it is left out
	key  []string // fields by which elements of a list are the same one in two versions
}

const (
	skipServer = "servers write it"
	skipName   = "it is the name under which the difference is shown"
	skipOwn    = "compared by itself"
)

// diffRules are by type and field.
var diffRules = map[string]diffRule{
	"Job.ID":                {skip: skipName},
	"Job.TaskGroups":        {skip: skipOwn},
	"Job.Status":            {skip: skipServer},
	"Job.StatusDescription": {skip: skipServer},
	"Job.Stable":            {skip: skipServer},
	"Job.Version":           {skip: skipServer},
	"Job.SubmitTime":        {skip: skipServer},
	"Job.CreateIndex":       {skip: skipServer},
	"Job.ModifyIndex":       {skip: skipServer},
	"Job.JobModifyIndex":    {skip: skipServer},
	"Job.VersionTag":        {skip: skipServer},
	"Job.NomadTokenID":      {skip: skipServer},
	"Job.Constraints":       {name: "Constraint"},
	"Job.Affinities":        {name: "Affinity"},
	"Job.Spreads":           {name: "Spread", key: []string{"Attribute"}},
	"JobUIConfig.Links":     {name: "Link", key: []string{"Label"}},
	"Spread.SpreadTarget":   {key: []string{"Value"}},

	"Multiregion.Regions": {name: "Region", key: []string{"Name"}},

	"TaskGroup.Name":        {skip: skipName},
	"TaskGroup.Tasks":       {skip: skipOwn},
	"TaskGroup.Constraints": {name: "Constraint"},
	"TaskGroup.Affinities":  {name: "Affinity"},
	"TaskGroup.Spreads":     {name: "Spread", key: []string{"Attribute"}},
	"TaskGroup.Volumes":     {name: "Volume", key: []string{"Name"}},
	"TaskGroup.Networks":    {name: "Network"},
	"TaskGroup.Services":    {name: "Service", key: []string{"Name"}},

	"ScalingPolicy.ID":          {skip: skipServer},
	"ScalingPolicy.Namespace":   {skip: skipServer},
	"ScalingPolicy.Target":      {skip: skipServer},
	"ScalingPolicy.CreateIndex": {skip: skipServer},
	"ScalingPolicy.ModifyIndex": {skip: skipServer},

	"NetworkResource.ReservedPorts": {name: "Static Port", key: []string{"Label"}},
	"NetworkResource.DynamicPorts":  {name: "Dynamic Port", key: []string{"Label"}},

	"Task.Name":            {skip: skipName},
	"Task.Constraints":     {name: "Constraint"},
	"Task.Affinities":      {name: "Affinity"},
	"Task.Services":        {name: "Service", key: []string{"Name"}},
	"Task.Artifacts":       {name: "Artifact"},
	"Task.Templates":       {name: "Template", key: []string{"DestPath"}},
	"Task.VolumeMounts":    {name: "VolumeMount", key: []string{"Destination"}},
	"Task.ScalingPolicies": {name: "Scaling", key: []string{"Type"}},
	"Task.Secrets":         {name: "Secret", key: []string{"Name"}},
	"Task.Identities":      {name: "Identity", key: []string{"Name"}},
	"Task.Actions":         {name: "Action", key: []string{"Name"}},

	"Resources.Networks":          {name: "Network"},
	"Resources.Devices":           {name: "Device", key: []string{"Name"}},
	"RequestedDevice.Constraints": {name: "Constraint"},
	"RequestedDevice.Affinities":  {name: "Affinity"},

	"Service.Namespace": {skip: "it is the job's"},
	"Service.Checks":    {name: "Check", key: []string{"Name"}},
	"Service.Connect":   {name: "ConsulConnect"},

	"ConsulSidecarService.Proxy": {name: "ConsulProxy"},
	"ConsulProxy.Upstreams": {
		name: "ConsulUpstreams", key: []string{"DestinationName", "DestinationNamespace", "LocalBindPort"},
	},
	"ConsulExposeConfig.Paths":                     {name: "Path", key: []string{"Path"}},
	"ConsulExposeConfig.Path":                      {name: "Path", key: []string{"Path"}},
	"SidecarTask.VolumeMounts":                     {name: "VolumeMount", key: []string{"Destination"}},
	"SidecarTask.Identities":                       {name: "Identity", key: []string{"Name"}},
	"ConsulGatewayProxy.EnvoyGatewayBindAddresses": {key: []string{"Name"}},
	"ConsulIngressConfigEntry.Listeners":           {name: "Listener", key: []string{"Port"}},
	"ConsulIngressListener.Services":               {name: "Service", key: []string{"Name"}},
	"ConsulTerminatingConfigEntry.Services":        {name: "Service", key: []string{"Name"}},
}
