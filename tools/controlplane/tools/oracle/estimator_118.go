//go:build !karmada_117 && !karmada_116

package main

import (
	"context"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	estimatorclient "github.com/karmada-io/karmada/pkg/estimator/client"
)

// MaxAvailableReplicas implements the estimator client's interface.
func (a *Accurate) MaxAvailableReplicas(_ context.Context, req estimatorclient.ReplicaEstimationRequest) ([]workv1alpha2.TargetCluster, error) {
	return a.maxAvailableReplicas(req.Clusters)
}
