package main

// A resource is one row of discovery.
type resource struct {
	group, version, plural, kind string
	namespaced, hasStatus        bool
}

// The resources that both schedulers read and write, and those that they look for.
var resources = []resource{
	{"", "v1", "namespaces", "Namespace", false, true},
	{"", "v1", "events", "Event", true, false},
	{"", "v1", "secrets", "Secret", true, false},
	{"", "v1", "configmaps", "ConfigMap", true, false},
	{"", "v1", "services", "Service", true, true},
	{"", "v1", "pods", "Pod", true, true},
	{"apps", "v1", "deployments", "Deployment", true, true},
	{"coordination.k8s.io", "v1", "leases", "Lease", true, false},
	{"cluster.karmada.io", "v1alpha1", "clusters", "Cluster", false, true},
	{"policy.karmada.io", "v1alpha1", "propagationpolicies", "PropagationPolicy", true, false},
	{"policy.karmada.io", "v1alpha1", "clusterpropagationpolicies", "ClusterPropagationPolicy", false, false},
	{"work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding", true, true},
	{"work.karmada.io", "v1alpha2", "clusterresourcebindings", "ClusterResourceBinding", false, true},
}

const bindings = "resourcebindings"

func (r resource) apiVersion() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

func (r resource) prefix() string {
	if r.group == "" {
		return "/api/" + r.version
	}
	return "/apis/" + r.group + "/" + r.version
}

func groupVersions() map[string][]resource {
	found := map[string][]resource{}
	for _, r := range resources {
		found[r.apiVersion()] = append(found[r.apiVersion()], r)
	}
	return found
}

func resourceList(apiVersion string, rows []resource) object {
	listed := []any{}
	for _, r := range rows {
		verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
		listed = append(listed, object{"name": r.plural, "singularName": "", "namespaced": r.namespaced, "kind": r.kind, "verbs": verbs})
		if r.hasStatus {
			listed = append(listed, object{"name": r.plural + "/status", "singularName": "", "namespaced": r.namespaced, "kind": r.kind,
				"verbs": []string{"get", "patch", "update"}})
		}
	}
	return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": apiVersion, "resources": listed}
}

func groupList() object {
	groups := []any{}
	seen := map[string]bool{"": true}
	for _, r := range resources {
		if seen[r.group] {
			continue
		}
		seen[r.group] = true
		version := object{"groupVersion": r.apiVersion(), "version": r.version}
		groups = append(groups, object{"name": r.group, "versions": []any{version}, "preferredVersion": version})
	}
	return object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
}
