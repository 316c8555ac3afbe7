package integration

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// portalClient speaks the extended protocol message by message.
type portalClient struct {
	t testing.TB
	f *pgproto3.Frontend
}

func newPortalClient(t testing.TB, h *pgconn.HijackedConn) *portalClient {
	return &portalClient{t: t, f: h.Frontend}
}

func (c *portalClient) query(sql string)       { c.f.Send(&pgproto3.Query{String: sql}) }
func (c *portalClient) parse(name, sql string) { c.f.Send(&pgproto3.Parse{Name: name, Query: sql}) }
func (c *portalClient) bind(portal, name string) {
	c.f.Send(&pgproto3.Bind{DestinationPortal: portal, PreparedStatement: name})
}
func (c *portalClient) execute(portal string, rows uint32) {
	c.f.Send(&pgproto3.Execute{Portal: portal, MaxRows: rows})
}
func (c *portalClient) sync() { c.f.Send(&pgproto3.Sync{}) }

// round sends what send writes and returns the answer up to ReadyForQuery.
func (c *portalClient) round(name string, send func()) string {
	c.t.Helper()
	send()
	if err := c.f.Flush(); err != nil {
		c.t.Fatal(err)
	}
	text := name + ":\n"
	for {
		m, err := c.f.Receive()
		if err != nil {
			c.t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			text += fmt.Sprintf("row %q\n", m.Values)
		case *pgproto3.CommandComplete:
			text += fmt.Sprintf("complete %s\n", m.CommandTag)
		case *pgproto3.ErrorResponse:
			text += fmt.Sprintf("error %s %s\n", m.Code, m.Message)
		case *pgproto3.ReadyForQuery:
			return text + fmt.Sprintf("ready %c\n", m.TxStatus)
		case *pgproto3.ParameterStatus, *pgproto3.NoticeResponse:
		default:
			text += fmt.Sprintf("%T\n", m)
		}
	}
}
