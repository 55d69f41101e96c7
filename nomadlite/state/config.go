package state

import (
	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// Keys of the rows of table config.
const (
	configScheduler = "scheduler"
	configCluster   = "cluster"
)

// configRow is a singleton: one of its values is set.
type configRow struct {
	Key       string
	Scheduler *structs.SchedulerConfiguration `cbor:",omitempty"`
	Cluster   *ClusterMeta                    `cbor:",omitempty"`
}

// ClusterMeta is what the cluster is called by.
type ClusterMeta struct {
	ClusterID  string
	CreateTime int64 // unix nanoseconds
}

func configTable() *table {
	t := plainTable(TableConfig, func(r *configRow) string { return r.Key })
	t.item = func(row any) any {
		if r := row.(*configRow); r.Scheduler != nil {
			return r.Scheduler
		} else {
			return r.Cluster
		}
	}
	return t
}

func defaultSchedulerConfig() *structs.SchedulerConfiguration {
	return &structs.SchedulerConfiguration{
		SchedulerAlgorithm: "binpack",
		PreemptionConfig:   structs.PreemptionConfig{SystemSchedulerEnabled: true},
		CreateIndex:        1,
		ModifyIndex:        1,
	}
}

// SchedulerConfig gives the scheduler's configuration. There always is one.
func (r Reader) SchedulerConfig(ws memdb.WatchSet) *structs.SchedulerConfiguration {
	row := get[*configRow](r.at(), ws, TableConfig, indexID, configScheduler)
	if row == nil {
		return defaultSchedulerConfig()
	}
	return row.Scheduler
}

// ClusterID gives the cluster's id, empty until the first leader has made one.
func (r Reader) ClusterID(ws memdb.WatchSet) string {
	if row := get[*configRow](r.at(), ws, TableConfig, indexID, configCluster); row != nil {
		return row.Cluster.ClusterID
	}
	return ""
}

// SetSchedulerConfig stores the configuration; with cas only when its ModifyIndex is that of the stored one. It says
// whether it was stored.
func (tx *Txn) SetSchedulerConfig(config *structs.SchedulerConfiguration, cas bool) bool {
	row := *config
	row.CreateIndex, row.ModifyIndex = tx.index, tx.index
	if old := lookup[*configRow](tx, TableConfig, configScheduler); old != nil {
		if cas && old.Scheduler.ModifyIndex != config.ModifyIndex {
			return false
		}
		row.CreateIndex = old.Scheduler.CreateIndex
	}
	tx.put(TableConfig, &configRow{Key: configScheduler, Scheduler: &row})
	return true
}

// SetClusterMeta stores the cluster's id unless there is one, and gives the one that counts.
func (tx *Txn) SetClusterMeta(id string, now int64) string {
	if old := lookup[*configRow](tx, TableConfig, configCluster); old != nil {
		return old.Cluster.ClusterID
	}
	tx.put(TableConfig, &configRow{Key: configCluster, Cluster: &ClusterMeta{ClusterID: id, CreateTime: now}})
	return id
}
