package replica

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/replica/pgoutput"
)

// tenColumns is a table as the benchmarks change it.
const tenColumns = `CREATE TABLE ten (id int PRIMARY KEY, a int, b bigint, n numeric(12,2), d date, ts timestamptz, f float8, flag boolean, s varchar(20), t text)`

func fillTen(from, to int) string {
	return fmt.Sprintf(`INSERT INTO ten SELECT g, g %% 1000, g * 1000003::bigint, (g %% 100000) * 1.01, date '2020-01-01' + g %% 1000, timestamptz '2020-01-01' + g * interval '1 s',
		g * 0.5, g %% 2 = 0, (ARRAY['TRUCK','MAIL','SHIP','RAIL'])[1 + g %% 4], 'some text ' || g %% 5000 FROM generate_series(%d, %d) g;`, from, to)
}

// BenchmarkDecode decodes messages that are in memory: what a row costs in our
// process, without the network and without applying it.
func BenchmarkDecode(b *testing.B) {
	for name, sql := range map[string]string{
		"insert":   fillTen(1, 20000),
		"update":   fillTen(1, 10000) + "UPDATE ten SET a = a + 1, n = n + 1",
		"streamed": fillTen(1, 20000),
		"small":    "",
	} {
		b.Run(name, func(b *testing.B) {
			url := database(b)
			c := connectTo(b, url)
			mustExec(b, c, tenColumns)
			if name == "streamed" {
				mustExec(b, c, "ALTER SYSTEM SET logical_decoding_work_mem = '64kB'")
				mustExec(b, c, "SELECT pg_catalog.pg_reload_conf()")
				defer func() {
					mustExec(b, c, "ALTER SYSTEM RESET logical_decoding_work_mem")
					mustExec(b, c, "SELECT pg_catalog.pg_reload_conf()")
				}()
			}
			if name == "small" {
				sql = "DO $$ BEGIN FOR g IN 1..3000 LOOP " + "INSERT INTO ten (id, a, t) VALUES (g, g, 'x'); UPDATE ten SET a = a + 1 WHERE id = g; COMMIT; END LOOP; END $$"
			}
			rec := recordChanges(b, url, "", sql)
			cat := &catalog.Catalog{Tables: []*catalog.Table{tableNamed(b, url, "ten")}}
			b.ReportAllocs()
			var rate StreamRate
			before := cpuTime()
			for b.Loop() {
				a := pgoutput.NewAssembler(&untilRecorded{rateSink{cat: cat, end: 1 << 63, rate: &rate, decoders: map[uint32]*rowDecoder{}}}, 0)
				for _, m := range rec.messages {
					if err := a.Message(m); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(rate.Rows), "ns/row")
			b.ReportMetric(float64(cpuTime()-before)/float64(rate.Rows), "cpu-ns/row")
		})
	}
}

// cpuTime is what this process has used: on a busy machine, time alone says little.
func cpuTime() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// untilRecorded passes the table by that ends a recording.
type untilRecorded struct{ rateSink }

func (s *untilRecorded) Relation(rel *pgoutput.Relation) error {
	if rel.Name == "recorded" {
		return nil
	}
	return s.rateSink.Relation(rel)
}

func (s *untilRecorded) Insert(oid uint32, row pgoutput.Tuple) error {
	if s.decoders[oid] == nil {
		return nil
	}
	return s.rateSink.Insert(oid, row)
}

// BenchmarkStream compares what we decode of the stream with what pg_recvlogical gets
// into nothing: the same changes, from slots of their own, one after the other. The
// ratio is ours to its.
func BenchmarkStream(b *testing.B) {
	rows, _ := strconv.Atoi(benchRows())
	for _, w := range []struct{ name, before, sql string }{
		{"insert", "", fillTen(1, rows)},
		{"update", fillTen(1, rows), "UPDATE ten SET a = a + 1, n = n + 1"},
		{"small", fillTen(1, 10000), fmt.Sprintf("DO $$ BEGIN FOR g IN 1..%d LOOP UPDATE ten SET a = a + 1 WHERE id = 1 + g %% 10000; INSERT INTO ten (id, a, t) VALUES (100000 + g, g, 'x'); COMMIT; END LOOP; END $$", rows/4)},
	} {
		b.Run(w.name, func(b *testing.B) {
			url := database(b)
			c := connectTo(b, url)
			mustExec(b, c, tenColumns+";"+w.before)
			mustExec(b, c, "CREATE PUBLICATION ten FOR TABLE ten")
			var slots []string
			for i := range 4 {
				slots = append(slots, fmt.Sprintf("%s_%d", c.Config().Database, i))
				mustExec(b, c, "SELECT pg_create_logical_replication_slot('"+slots[i]+"', 'pgoutput')")
				defer func() {
					// A walsender ends some time after its connection.
					for queryText(b, c, "SELECT count(pg_drop_replication_slot(slot_name))::text FROM pg_replication_slots WHERE slot_name = '"+slots[i]+"' AND NOT active") == "0" {
						time.Sleep(10 * time.Millisecond)
					}
				}()
			}
			mustExec(b, c, w.sql)
			var text string
			var end uint64
			if err := c.QueryRow(context.Background(), "SELECT l::text, (l - '0/0')::bigint FROM pg_current_wal_insert_lsn() l").Scan(&text, &end); err != nil {
				b.Fatal(err)
			}
			mustExec(b, c, "INSERT INTO ten VALUES (-1)") // the first to end after that
			bin := filepath.Join(server.BinDir, "pg_recvlogical")
			version := tableVersion(b, url)
			var theirs, ours, cpu time.Duration
			var rate StreamRate
			var err error
			for i, slot := range slots {
				if i%2 == 0 {
					args := []string{"-d", url, "--slot", slot, "--start", "--endpos", text, "--no-loop", "-f", "/dev/null"}
					for name, value := range map[string]string{"proto_version": strconv.Itoa(min(4, version-12)), "publication_names": "ten", "streaming": "on", "binary": "true", "messages": "true"} {
						args = append(args, "-o", name+"="+value)
					}
					began := time.Now()
					if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
						b.Fatalf("%v\n%s", err, out)
					}
					theirs += time.Since(began)
					continue
				}
				before := cpuTime()
				if rate, err = MeasureStream(context.Background(), url, slot, "ten", end); err != nil {
					b.Fatal(err)
				}
				cpu += cpuTime() - before
				ours += rate.Elapsed
			}
			for b.Loop() { // nothing: it is measured above
			}
			b.ReportMetric(float64(2*rate.Rows)/ours.Seconds(), "rows/s")
			b.ReportMetric(float64(2*rate.Rows)/theirs.Seconds(), "pg_recvlogical-rows/s")
			b.ReportMetric(theirs.Seconds()/ours.Seconds(), "ratio")
			b.ReportMetric(float64(cpu)/float64(2*rate.Rows), "our-cpu-ns/row")
			b.ReportMetric(float64(rate.Rows), "rows")
		})
	}
}

func tableVersion(b *testing.B, url string) int {
	n, err := strconv.Atoi(queryText(b, connectTo(b, url), "SHOW server_version_num"))
	if err != nil {
		b.Fatal(err)
	}
	return n / 10000
}
