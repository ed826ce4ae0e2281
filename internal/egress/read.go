package egress

import "io"

// Read reads at most max bytes of an answer's body and says whether there was more. The bound holds for what was
// inflated: a small answer that inflates to gigabytes costs max bytes. What was read before an error is returned with
// it.
func Read(body io.Reader, max int64) (b []byte, cut bool, err error) {
	b, err = io.ReadAll(io.LimitReader(body, max+1))
	if int64(len(b)) > max {
		return b[:max], true, nil
	}
	return b, false, err
}
