package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"pgaccel/vector"
)

// ArrayColumn is how a column of a result becomes an array.
type ArrayColumn struct {
	OID     uint32 // the type of its values
	Format  int16  // in which they are written
	Element uint32 // the type of the elements
}

// ColumnArrays writes the columns of a result as values of parameters in binary format, one array each:
//
//	int32 dimensions: 1, or 0 of no rows | int32 whether there are nulls | int32 OID of the elements' type
//	of rows: int32 how many | int32 lower bound: 1
//	for each row as in DataRow: int32 length, -1 for a null | its binary form
//
// The error says what cannot be written, or that all of them would take more than limit bytes.
func ColumnArrays(batch *vector.Batch, columns []ArrayColumn, settings TextSettings, limit int) ([][]byte, error) {
	arrays := make([][]byte, len(columns))
	oids, formats := make([]uint32, len(columns)), make([]int16, len(columns))
	for i, c := range columns {
		oids[i], formats[i] = c.OID, c.Format
		arrays[i] = arrayHead(c, batch.Rows)
	}
	var encoder *RowEncoder
	var row []byte
	total := 0
	for i := range batch.Rows {
		fresh, err := batch.Load(i)
		if err != nil {
			return nil, err
		}
		if fresh || encoder == nil {
			if encoder, err = NewRowEncoder(batch.Columns, oids, formats, settings); err != nil {
				return nil, err
			}
		}
		row = encoder.Append(row[:0], i-batch.First)
		if total += len(row); total > limit {
			return nil, fmt.Errorf("rows of more than %d bytes", limit)
		}
		fields := row[HeaderLen+2:]
		for c := range arrays {
			size := 4
			if n := int32(binary.BigEndian.Uint32(fields)); n >= 0 {
				size += int(n)
			} else {
				arrays[c][7] = 1
			}
			arrays[c] = append(arrays[c], fields[:size]...)
			fields = fields[size:]
		}
	}
	return arrays, nil
}

func arrayHead(c ArrayColumn, rows int) []byte {
	head := make([]byte, 12, 20)
	binary.BigEndian.PutUint32(head[8:], c.Element)
	if rows > 0 {
		head[3] = 1
		head = binary.BigEndian.AppendUint32(head, uint32(rows))
		head = binary.BigEndian.AppendUint32(head, 1)
	}
	return head
}

// NullArrays is ColumnArrays of rows of nulls.
func NullArrays(columns []ArrayColumn, rows int) [][]byte {
	arrays := make([][]byte, len(columns))
	for i, c := range columns {
		arrays[i] = arrayHead(c, rows)
		for range rows {
			arrays[i][7] = 1
			arrays[i] = binary.BigEndian.AppendUint32(arrays[i], math.MaxUint32) // -1
		}
	}
	return arrays
}
