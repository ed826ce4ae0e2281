//go:build !linux

package document

import "os"

// limitProcess: other systems have no such limits that hold; the time limit and a process of its own remain.
func limitProcess(int64, uint64) error { return nil }

const within = `shift 2; exec "$@"`

func overCPU(*os.ProcessState) bool { return false }
