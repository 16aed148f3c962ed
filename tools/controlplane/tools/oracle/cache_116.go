//go:build karmada_116

package main

import (
	"k8s.io/client-go/tools/cache"

	clusterlister "github.com/karmada-io/karmada/pkg/generated/listers/cluster/v1alpha1"
	schedulercache "github.com/karmada-io/karmada/pkg/scheduler/cache"
)

func newCache(clusters clusterlister.ClusterLister, _ cache.Indexer) schedulercache.Cache {
	return schedulercache.NewCache(clusters)
}

// assume does nothing: this version knows neither assigning bindings nor assumed workloads.
func assume(*Scenario, schedulercache.Cache) {}
