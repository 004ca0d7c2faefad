package k8s

import (
	"strings"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// grantedBy lists the permissions that a role grants.
func grantedBy(object runtime.Object) (list []string) {
	role, ok := object.(*rbac.ClusterRole)
	if !ok {
		return nil
	}
	for _, r := range role.Rules {
		for _, resource := range r.Resources {
			name, sub, _ := strings.Cut(resource, "/")
			for _, verb := range r.Verbs {
				list = append(list, permission{r.APIGroups[0], name, sub, verb}.String())
			}
		}
	}
	return list
}

// boundBy returns the subject of a binding.
func boundBy(object runtime.Object) (subject string) {
	if b, ok := object.(*rbac.ClusterRoleBinding); ok {
		for _, s := range b.Subjects {
			subject += s.Kind + " " + s.Name
		}
	}
	return subject
}
