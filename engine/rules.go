package engine

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// ruleCache has rules as a server has them, of time zones or of letters' cases: they are asked for when the first statement
// needs them, in some tenths of a second. A server may get others while it runs: later they are asked for again.
type ruleCache[K comparable, V any] struct {
	mu   sync.Mutex
	list *lru.Cache[K, *rules[V]]
}

// rules are those of one key, once ready is closed.
type rules[V any] struct {
	ready chan struct{}
	value V
	err   error
	asked time.Time
	again bool // they are being asked for again
}

// rulesRetry is how long an error is kept, rulesFresh how long rules are taken without a question.
const rulesRetry, rulesFresh = 10 * time.Second, 10 * time.Minute

// newRuleCache returns one of rules for so many keys.
func newRuleCache[K comparable, V any](most int) *ruleCache[K, V] {
	return &ruleCache[K, V]{list: must(lru.New[K, *rules[V]](most))}
}

// get returns the rules of a key, and waits for them until the context ends.
func (c *ruleCache[K, V]) get(ctx context.Context, key K, ask func() (V, error)) (none V, err error) {
	c.mu.Lock()
	r, known := c.list.Get(key)
	if known {
		select {
		case <-r.ready:
			known = r.err == nil || time.Since(r.asked) < rulesRetry
			if r.err == nil && !r.again && time.Since(r.asked) > rulesFresh {
				r.again = true
				go c.renew(key, ask)
			}
		default:
		}
	}
	if !known {
		if ctx.Err() != nil {
			c.mu.Unlock()
			return none, ctx.Err()
		}
		r = &rules[V]{ready: make(chan struct{}), asked: time.Now()}
		c.list.Add(key, r)
		go func() {
			defer close(r.ready)
			r.value, r.err = ask()
		}()
	}
	c.mu.Unlock()
	select { // what is ready is ready for those who do not wait
	case <-r.ready:
		return r.value, r.err
	default:
	}
	select {
	case <-r.ready:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// renew asks for rules that are known. Where that fails, they are asked for from the start.
func (c *ruleCache[K, V]) renew(key K, ask func() (V, error)) {
	r := &rules[V]{ready: make(chan struct{}), asked: time.Now()}
	r.value, r.err = ask()
	close(r.ready)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list.Add(key, r)
}

// ended is a context for those who do not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
