package sandbox

import (
	"encoding/json"
	"strings"
	"time"
)

// Option sets an option of New and Open. There is one function for each key of caisson-policy(5);
// the library refuses what the backend cannot honour.
type Option func(*config)

// config is the policy as JSON has it.
type config struct{ values map[string]any }

// Rule is one entry of WithRules.
type Rule struct {
	Op     []string `json:"op"`              // read, write, delete, exec, net
	Effect string   `json:"effect"`          // allow, deny
	Path   string   `json:"path"`            // a path, a pattern, a command or a host
	Scope  string   `json:"scope,omitempty"` // files: the rule holds for file calls only
}

// WithBaseDir sets the directory to work in, as WithWorkspace does.
func WithBaseDir(dir string) Option { return WithWorkspace(dir) }

// WithOption sets the option with this key, for example "limits.memory", to a value that
// encoding/json can encode.
func WithOption(key string, value any) Option {
	return func(c *config) { c.set(key, value) }
}

// set stores the value at a key, which may have a group: "limits.memory".
func (c *config) set(key string, value any) {
	group, name, grouped := strings.Cut(key, ".")
	if !grouped {
		c.values[key] = value
		return
	}
	inner, ok := c.values[group].(map[string]any)
	if !ok {
		inner = map[string]any{}
		c.values[group] = inner
	}
	inner[name] = value
}

func (c *config) get(key string) any {
	group, name, grouped := strings.Cut(key, ".")
	if !grouped {
		return c.values[key]
	}
	inner, _ := c.values[group].(map[string]any)
	return inner[name]
}

func addStrings(key string, values []string) Option {
	return func(c *config) {
		old, _ := c.get(key).([]string)
		c.set(key, append(append([]string{}, old...), values...))
	}
}

func addRules(key string, rules []Rule) Option {
	return func(c *config) {
		old, _ := c.get(key).([]Rule)
		c.set(key, append(append([]Rule{}, old...), rules...))
	}
}

// span is a duration in the form of the policy: milliseconds, at least one.
func span(d time.Duration) any {
	if d == NoLimit {
		return "none"
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func amount(n int64) any {
	if n == NoLimit {
		return "none"
	}
	return n
}

func configJSON(t Type, opts []Option) ([]byte, error) {
	c := config{values: map[string]any{}}
	if t != TypeDefault {
		c.values["backend"] = string(t)
	}
	for _, set := range opts {
		set(&c)
	}
	text, err := json.Marshal(c.values)
	if err != nil {
		return nil, fail(ErrInvalid, "options: %v", err)
	}
	return text, nil
}
