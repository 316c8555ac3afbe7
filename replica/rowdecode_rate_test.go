package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/replica/pgoutput"
)

// StreamRate is what MeasureStream read, and in what time.
type StreamRate struct {
	Transactions int64
	Rows         int64 // inserted, updated and deleted
	Elapsed      time.Duration
}

// PerSecond returns changed rows per second.
func (r StreamRate) PerSecond() float64 { return float64(r.Rows) / r.Elapsed.Seconds() }

// MeasureStream reads the stream of a logical slot (of pgoutput, which the caller has
// made before the changes) up to the first commit that ends at end or later, decodes
// its rows as serving does, and drops them: an upper bound of how fast changes can be
// applied.
func MeasureStream(ctx context.Context, upstream, slot, publication string, end uint64) (StreamRate, error) {
	var rate StreamRate
	cfg, err := connConfig(upstream, "pgaccel measure")
	if err != nil {
		return rate, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return rate, err
	}
	cat, _, err := readCatalogOf(ctx, conn, []string{"*"})
	conn.Close(ctx)
	if err != nil {
		return rate, err
	}
	sink := &rateSink{cat: cat, end: end, rate: &rate, decoders: map[uint32]*rowDecoder{}}
	cfg.RuntimeParams["replication"] = "database"
	raw, err := connectRaw(ctx, &cfg.Config)
	if err != nil {
		return rate, err
	}
	defer raw.Close()
	raw.gather = true
	s := &stream{conn: raw, assembler: pgoutput.NewAssembler(sink, 0), advanced: func(uint64) {}, answered: make(chan struct{}, 1)}
	began := time.Now()
	if err := s.start(slot, publication, cat.ServerVersion); err != nil {
		return rate, err
	}
	err = s.run()
	rate.Elapsed = time.Since(began)
	if errors.Is(err, errMeasured) {
		err = nil
	}
	return rate, err
}

// errMeasured ends the stream where the measurement ends.
var errMeasured = errors.New("the end of what is measured")

// rateSink counts and decodes rows.
type rateSink struct {
	cat      *catalog.Catalog
	end      uint64
	rate     *StreamRate
	decoders map[uint32]*rowDecoder
}

func (s *rateSink) Begin(uint32) error { return nil }

func (s *rateSink) Relation(rel *pgoutput.Relation) error {
	for _, t := range s.cat.Tables {
		for _, leaf := range leavesOf(t) {
			if leaf.OID == rel.OID {
				var err error
				s.decoders[rel.OID], err = newRowDecoder(rel, t)
				return err
			}
		}
	}
	return fmt.Errorf("relation %s.%s of the stream is no table that could be copied", rel.Schema, rel.Name)
}

func (s *rateSink) Insert(oid uint32, row pgoutput.Tuple) error {
	s.rate.Rows++
	_, err := s.decoders[oid].insert(row)
	return err
}

func (s *rateSink) Update(oid uint32, old pgoutput.Tuple, kind pgoutput.OldKind, row pgoutput.Tuple) error {
	s.rate.Rows++
	_, _, err := s.decoders[oid].update(old, kind, row)
	return err
}

func (s *rateSink) Delete(oid uint32, old pgoutput.Tuple, kind pgoutput.OldKind) error {
	s.rate.Rows++
	_, err := s.decoders[oid].delete(old, kind)
	return err
}

func (s *rateSink) Truncate([]uint32, bool, bool) error { return nil }

func (s *rateSink) Message(bool, uint64, string, []byte) error { return nil }

func (s *rateSink) TooLarge(xid uint32, oids []uint32) error {
	return fmt.Errorf("transaction %d is too large to be measured", xid)
}

func (s *rateSink) Commit(_ uint32, _, endLSN uint64) error {
	s.rate.Transactions++
	if endLSN >= s.end {
		return errMeasured
	}
	return nil
}
