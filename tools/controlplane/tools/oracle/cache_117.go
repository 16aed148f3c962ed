//go:build karmada_117

package main

import (
	"k8s.io/client-go/tools/cache"

	clusterlister "github.com/karmada-io/karmada/pkg/generated/listers/cluster/v1alpha1"
	schedulercache "github.com/karmada-io/karmada/pkg/scheduler/cache"
)

func newCache(clusters clusterlister.ClusterLister, bindings cache.Indexer) schedulercache.Cache {
	return schedulercache.NewCache(clusters, bindings)
}

// assume leaves out assumed workloads, which this version does not know.
func assume(scenario *Scenario, cache schedulercache.Cache) {
	for _, rb := range scenario.Assigning {
		cache.AssigningResourceBindings().Add(rb)
	}
}
