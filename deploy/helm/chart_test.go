// Package helm tests the chart: Helm's own linter and renderer, Kubernetes' own types, and pgaccel's own reader of the
// configuration that comes out.
package helm

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const chartDir = "pgaccel"

// objects are what a chart renders to. A pod is that of the StatefulSet or the Deployment.
type objects struct {
	stateful *appsv1.StatefulSet
	deployed *appsv1.Deployment
	pod      corev1.PodTemplateSpec
	config   corev1.ConfigMap
	secret   *corev1.Secret
	clients  corev1.Service
	http     corev1.Service
	monitor  *monitor
	rules    *rules
	texts    map[string]string // by file
}

// monitor and rules are what the chart has of Prometheus' operator's types.
type monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port string `json:"port"`
		} `json:"endpoints"`
	} `json:"spec"`
}

type rules struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              any `json:"spec"`
}

// render renders the chart with values over its defaults, as a release "shop" in the namespace "sales".
func render(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = "1.2.3", "1.2.3"
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "shop", Namespace: "sales", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// rendered has Kubernetes' types take all that is rendered: a field that they do not know is an error.
func rendered(t *testing.T, values string) (o objects) {
	t.Helper()
	texts, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	o.texts = texts
	for file, text := range texts {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for _, document := range strings.Split(text, "\n---\n") {
			if strings.TrimSpace(document) != "" {
				o.add(t, file, []byte(document))
			}
		}
	}
	if o.stateful == nil == (o.deployed == nil) {
		t.Fatal("want a StatefulSet or a Deployment")
	}
	return o
}

func (o *objects) add(t *testing.T, file string, document []byte) {
	t.Helper()
	var what metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &what); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, document)
	}
	var to any
	switch what.Kind {
	case "StatefulSet":
		o.stateful = &appsv1.StatefulSet{}
		to = o.stateful
	case "Deployment":
		o.deployed = &appsv1.Deployment{}
		to = o.deployed
	case "ConfigMap":
		to = &o.config
	case "Secret":
		o.secret = &corev1.Secret{}
		to = o.secret
	case "Service":
		to = &o.clients
		if what.Labels["app.kubernetes.io/component"] == "http" {
			to = &o.http
		}
	case "ServiceMonitor":
		o.monitor = &monitor{}
		to = o.monitor
	case "PrometheusRule":
		o.rules = &rules{}
		to = o.rules
	default:
		t.Fatalf("%s: what is a %q?", file, what.Kind)
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		t.Fatalf("%s: %v\n%s", file, err, document)
	}
	if unknown, err := json.UnmarshalStrict(text, to); err != nil || len(unknown) > 0 { // letters' cases count, as in Kubernetes
		t.Errorf("%s: %v, %v\n%s", file, unknown, err, document)
	}
	if o.stateful != nil {
		o.pod = o.stateful.Spec.Template
	} else if o.deployed != nil {
		o.pod = o.deployed.Spec.Template
	}
}

const (
	minimal = `upstream: {url: "postgres://pgaccel@postgres:5432/shop", existingSecret: postgres-pgaccel}`
	most    = `
upstream: {url: "postgres://pgaccel@postgres:5432/shop?sslmode=verify-full&sslrootcert=/ca/ca.crt", password: "s: e'cret"}
config:
  accelerate: [public.*, "!public.secret"]
  max-clients: 1000000
  memory: 8GiB
  tls-require: on
  trials: false
  wait-limit: 100ms
image: {repository: registry.example/pgaccel}
imagePullSecrets: [{name: registry}]
replicas: 2
drainSeconds: 600
persistence: {enabled: false}
tls: {existingSecret: pgaccel-tls}
service: {type: LoadBalancer, port: 5432, annotations: {example/internal: "true"}}
resources: {requests: {cpu: "2"}, limits: {memory: 16Gi}}
gpu: {enabled: true, count: 2, runtimeClassName: nvidia}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
podAnnotations: {example/mesh: "off"}
extraVolumes: [{name: ca, configMap: {name: ca}}]
extraVolumeMounts: [{name: ca, mountPath: /ca}]
nodeSelector: {example/gpu: "true"}
tolerations: [{key: gpu, operator: Exists}]
affinity: {nodeAffinity: {}}
`
)

// TestLint: Helm's linter has nothing to say but that there is no icon.
func TestLint(t *testing.T) {
	for _, values := range []string{"", minimal, most} {
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.AllWithKubeVersion(chartDir, given, "sales", nil).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%v\nof the values\n%s", m, values)
			}
		}
	}
}

// TestStatefulSet: with a volume the columns are kept on it, and who has only named the server and its Secret gets what is
// safe.
func TestStatefulSet(t *testing.T) {
	o := rendered(t, minimal)
	if o.stateful == nil {
		t.Fatal("no StatefulSet")
	}
	claims := o.stateful.Spec.VolumeClaimTemplates
	if len(claims) != 1 || claims[0].Name != "data" || claims[0].Spec.Resources.Requests.Storage().String() != "20Gi" || claims[0].Spec.StorageClassName != nil {
		t.Errorf("volumes: %+v", claims)
	}
	c := o.pod.Spec.Containers[0]
	if got := mounts(c)["data"]; got != "/var/lib/pgaccel" || !strings.HasPrefix(o.settings(t)["data-dir"].(string), got+"/") {
		t.Errorf("the volume is at %q, the columns are in %v", got, o.settings(t)["data-dir"])
	}
	if len(c.Env) != 1 || c.Env[0].Name != "PGPASSWORD" || c.Env[0].ValueFrom.SecretKeyRef.Name != "postgres-pgaccel" || c.Env[0].ValueFrom.SecretKeyRef.Key != "password" {
		t.Errorf("environment: %+v", c.Env)
	}
	if o.secret != nil {
		t.Errorf("a Secret beside the one that is there: %v", o.secret)
	}
	if repository, tag, _ := strings.Cut(c.Image, ":"); filepath.Base(repository) != "pgaccel" || tag != "1.2.3" {
		t.Errorf("image %s", c.Image)
	}
	if p := c.ReadinessProbe.HTTPGet; p.Path != "/readyz" || p.Port.String() != "http" {
		t.Errorf("readiness: %v", p)
	}
	if p := c.LivenessProbe.HTTPGet; p.Path != "/livez" || p.Port.String() != "http" {
		t.Errorf("liveness: %v", p)
	}
	s, p := c.SecurityContext, o.pod.Spec.SecurityContext
	if !*p.RunAsNonRoot || *p.RunAsUser != 6432 || *p.FSGroup != 6432 || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		!*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("security contexts: %v, %v", p, s)
	}
	image, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if user := fmt.Sprintf("\nUSER %d\n", *p.RunAsUser); strings.Count(string(image), user) != 2 {
		t.Errorf("the images, with and without a GPU, have no%s", user)
	}
	if *o.pod.Spec.AutomountServiceAccountToken || *o.pod.Spec.EnableServiceLinks {
		t.Error("it gets a token, or other services' addresses as PGACCEL_ variables")
	}
	if *o.pod.Spec.TerminationGracePeriodSeconds != 95 || o.settings(t)["drain-timeout"] != "30s" {
		t.Errorf("%d seconds to end, drain-timeout %v", *o.pod.Spec.TerminationGracePeriodSeconds, o.settings(t)["drain-timeout"])
	}
	if o.clients.Spec.Type != corev1.ServiceTypeClusterIP || o.clients.Spec.SessionAffinity != "" || o.monitor != nil || o.rules != nil {
		t.Errorf("services: %v, %v, %v", o.clients.Spec, o.monitor, o.rules)
	}
	o.fits(t)
}

// TestDeployment: without a volume, and with everything else.
func TestDeployment(t *testing.T) {
	o := rendered(t, most)
	if o.deployed == nil || *o.deployed.Spec.Replicas != 2 {
		t.Fatalf("want a Deployment of two: %v", o.deployed)
	}
	c := o.pod.Spec.Containers[0]
	if o.settings(t)["data-dir"] != nil || mounts(c)["data"] != "/var/lib/pgaccel" {
		t.Errorf("data-dir %v", o.settings(t)["data-dir"])
	}
	if o.secret == nil || string(o.secret.Data["password"]) != "s: e'cret" {
		t.Fatalf("secret: %v", o.secret)
	}
	if ref := c.Env[0].ValueFrom.SecretKeyRef; ref.Name != o.secret.Name || ref.Key != "password" {
		t.Errorf("the password is of %v", ref)
	}
	for file, text := range o.texts {
		if strings.Contains(text, "e'cret") || strings.Contains(text, "czogZSdjcmV0") != strings.HasSuffix(file, "/secret.yaml") {
			t.Errorf("%s has the password, or the Secret has not:\n%s", file, text)
		}
	}
	if c.Image != "registry.example/pgaccel:1.2.3-gpu" {
		t.Errorf("image %s", c.Image)
	}
	gpus := c.Resources.Limits["nvidia.com/gpu"]
	if gpus.String() != "2" || c.Resources.Limits.Memory().String() != "16Gi" || c.Resources.Requests.Cpu().String() != "2" || *o.pod.Spec.RuntimeClassName != "nvidia" {
		t.Errorf("resources: %v, %v", c.Resources, o.pod.Spec.RuntimeClassName)
	}
	settings := o.settings(t)
	if *o.pod.Spec.TerminationGracePeriodSeconds != 665 || settings["drain-timeout"] != "600s" {
		t.Errorf("%d seconds to end, drain-timeout %v", *o.pod.Spec.TerminationGracePeriodSeconds, settings["drain-timeout"])
	}
	if at := mounts(c)["tls"]; settings["tls-cert"] != at+"/tls.crt" || settings["tls-key"] != at+"/tls.key" {
		t.Errorf("certificates are at %s: %v", at, settings)
	}
	if o.clients.Spec.Type != corev1.ServiceTypeLoadBalancer || o.clients.Spec.Ports[0].Port != 5432 || o.clients.Spec.SessionAffinity != corev1.ServiceAffinityClientIP ||
		o.clients.Annotations["example/internal"] != "true" {
		t.Errorf("clients: %v", o.clients)
	}
	if o.pod.Annotations["example/mesh"] != "off" || o.pod.Spec.ImagePullSecrets[0].Name != "registry" || mounts(c)["ca"] != "/ca" ||
		o.pod.Spec.NodeSelector["example/gpu"] != "true" || len(o.pod.Spec.Tolerations) != 1 || o.pod.Spec.Affinity == nil {
		t.Errorf("pod: %+v", o.pod)
	}
	o.fits(t)

	if o.monitor == nil || o.monitor.Labels["release"] != "prometheus" || len(o.monitor.Spec.Endpoints) != 1 || o.monitor.Spec.Endpoints[0].Port != o.http.Spec.Ports[0].Name {
		t.Fatalf("monitor: %+v", o.monitor)
	}
	for label, want := range o.monitor.Spec.Selector.MatchLabels {
		if o.http.Labels[label] != want {
			t.Errorf("the monitor selects %s=%s, the service has %v", label, want, o.http.Labels)
		}
	}
	if o.clients.Labels["app.kubernetes.io/component"] == o.monitor.Spec.Selector.MatchLabels["app.kubernetes.io/component"] {
		t.Error("the monitor selects the clients' service, too")
	}
	alerts, err := os.ReadFile("../prometheus/pgaccel.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err := yaml.Unmarshal(alerts, &want); err != nil {
		t.Fatal(err)
	}
	got, _ := yaml.Marshal(o.rules.Spec)
	if all, _ := yaml.Marshal(want); o.rules.Labels["release"] != "prometheus" || string(got) != string(all) {
		t.Errorf("alerts: %s\nwant %s", got, all)
	}
}

func mounts(c corev1.Container) map[string]string {
	at := map[string]string{}
	for _, m := range c.VolumeMounts {
		at[m.Name] = m.MountPath
	}
	return at
}

// settings are those of the rendered configuration file.
func (o *objects) settings(t *testing.T) (settings map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(o.config.Data["pgaccel.yml"]), &settings); err != nil {
		t.Fatal(err)
	}
	return settings
}

// fits checks what one object says of another.
func (o *objects) fits(t *testing.T) {
	t.Helper()
	selector, volumes := (*metav1.LabelSelector)(nil), map[string]bool{}
	if o.stateful != nil {
		selector = o.stateful.Spec.Selector
		if o.stateful.Spec.ServiceName != o.clients.Name {
			t.Errorf("no service %s", o.stateful.Spec.ServiceName)
		}
		for _, v := range o.stateful.Spec.VolumeClaimTemplates {
			volumes[v.Name] = true
		}
	} else {
		selector = o.deployed.Spec.Selector
	}
	for _, v := range o.pod.Spec.Volumes {
		volumes[v.Name] = true
		if v.Name == "config" && v.ConfigMap.Name != o.config.Name {
			t.Errorf("no ConfigMap %s", v.ConfigMap.Name)
		}
	}
	for _, labels := range []map[string]string{selector.MatchLabels, o.clients.Spec.Selector, o.http.Spec.Selector} {
		if len(labels) != 2 {
			t.Errorf("selector %v", labels)
		}
		for name, want := range labels {
			if o.pod.Labels[name] != want {
				t.Errorf("%s=%s is selected, pods have %v", name, want, o.pod.Labels)
			}
		}
	}
	c := o.pod.Spec.Containers[0]
	if len(c.VolumeMounts) != len(volumes) {
		t.Errorf("volumes %v, mounts %v", volumes, c.VolumeMounts)
	}
	for name := range mounts(c) {
		if !volumes[name] {
			t.Errorf("no volume %s", name)
		}
	}
	for flag, s := range map[string]corev1.Service{"--listen": o.clients, "--http": o.http} {
		at, port := slices.Index(c.Args, flag), int32(0)
		for _, p := range c.Ports {
			if p.Name == s.Spec.Ports[0].TargetPort.String() {
				port = p.ContainerPort
			}
		}
		if at < 0 || c.Args[at+1] != fmt.Sprint(":", port) || len(s.Spec.Ports) != 1 {
			t.Errorf("%s leads to port %d of %q", s.Name, port, c.Args)
		}
	}
	if o.http.Spec.Type != "" {
		t.Errorf("metrics and the console are at a %s", o.http.Spec.Type)
	}
}

// program builds pgaccel.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pgaccel")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/pgaccel")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestPgaccelReadsIt: by the container's arguments pgaccel takes all of the rendered file: it gets as far as the file of a
// password, which there is none of. What the schema lets through are its flags but for those that the chart decides.
func TestPgaccelReadsIt(t *testing.T) {
	pgaccel := program(t)
	tls := httptest.NewTLSServer(nil)
	defer tls.Close()
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	run := func(args ...string) string {
		cmd := exec.Command(pgaccel, args...)
		cmd.Env = []string{"PGACCEL_LISTEN=0.0.0.0:6432", "PGACCEL_HTTP=0.0.0.0:8432"} // as the image has them
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	for _, values := range []string{minimal, most} {
		o := rendered(t, values)
		dir := t.TempDir()
		file, password, authority := filepath.Join(dir, "pgaccel.yml"), filepath.Join(dir, "password"), filepath.Join(dir, "ca.crt")
		config := strings.ReplaceAll(o.config.Data["pgaccel.yml"], "/ca/ca.crt", authority) // a file that is mounted
		for path, content := range map[string]string{file: config, authority: certificate} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := slices.Clone(o.pod.Spec.Containers[0].Args)
		at := slices.Index(args, "--config")
		if at < 0 || args[at+1] != mounts(o.pod.Spec.Containers[0])["config"]+"/pgaccel.yml" {
			t.Fatalf("arguments: %q", args)
		}
		args[at+1] = file
		if out, want := run(append(args, "--upstream-password-file", password)...), "--upstream-password-file: stat "+password; !strings.Contains(out, want) {
			t.Errorf("pgaccel says\n%s\nwant %s\nof %s", out, want, o.config.Data["pgaccel.yml"])
		}
	}

	var flags []string
	for _, m := range regexp.MustCompile(`(?m)^\s+--([a-z-]+)`).FindAllStringSubmatch(run("serve", "--help"), -1) {
		flags = append(flags, m[1])
	}
	decided := []string{"config", "data-dir", "drain-timeout", "http", "listen", "reuse-port", "tls-cert", "tls-key", "upstream", "upstream-password-file"}
	flags = slices.DeleteFunc(flags, func(flag string) bool { return slices.Contains(decided, flag) })
	slices.Sort(flags)
	text, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Config struct {
				PropertyNames struct{ Enum []string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	if got := schema.Properties.Config.PropertyNames.Enum; len(flags) < 15 || !slices.Equal(got, flags) {
		t.Errorf("the schema has %q\nserve has %q", got, flags)
	}
}

// TestRefused: what cannot be meant is an error before anything is installed.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{`{}`, "upstream.url is missing"},
		{`upstream: {url: "postgres://pgaccel:secret@postgres/shop"}`, "upstream.url has a password"},
		{`upstream: {url: "postgres://pgaccel@postgres/shop?sslmode=disable&password=secret"}`, "upstream.url has a password"},
		{`upstream: {url: "host=postgres password = secret"}`, "upstream.url has a password"},
		{`upstream: {url: "postgres://postgres", password: a, existingSecret: b}`, "are both set"},
		{`upstream: {url: "postgres://postgres"}` + "\nconfig: {memroy: 8GiB}", "memroy"},
		{`upstream: {url: "postgres://postgres"}` + "\nconfig: {data-dir: /tmp}", "data-dir"},
		{`upstream: {url: "postgres://postgres"}` + "\nreplica: 2", "replica"},
		{`upstream: {url: "postgres://postgres"}` + "\ndrainSeconds: 30s", "drainSeconds"},
	} {
		if _, err := render(t, c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.values, err, c.want)
		}
	}
}

// TestPasswordIsNotSeenWhereThereIsNone: URLs that only look as if they had one.
func TestPasswordIsNotSeenWhereThereIsNone(t *testing.T) {
	for _, url := range []string{
		"postgres://pgaccel@postgres:5432/shop?options=-c%20geqo%3Doff", "postgres://[::1]:5432/shop", "host=postgres user=pgaccel passfile=/pgpass",
		"postgres://postgres:5432/shop?application_name=a@b",
	} {
		o := rendered(t, `upstream: {url: "`+url+`"}`)
		if o.settings(t)["upstream"] != url || len(o.pod.Spec.Containers[0].Env) != 0 || o.secret != nil {
			t.Errorf("%s: %v", url, o.config.Data)
		}
	}
}
