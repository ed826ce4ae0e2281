package audio
import ("testing";"fmt")
var dbg func(j *Jitter, tick int, delay float64)
func TestDbg(t *testing.T) {
	for _, n := range networks {
		if n.name == "another route, 100 ms longer" || n.name=="even jitter of 120 ms, out of order" {
			last := 0
			dbg = func(j *Jitter, tick int, delay float64) {
				if j.Concealed != last || tick%1000==0 { fmt.Println(n.name[:5], tick, "concealed", j.Concealed-last, "late", j.Late, "delay", delay, "target", j.target/8, "buffered", (j.end-j.next)/8); last = j.Concealed }
			}
			n.run(Narrow, 0)
		}
	}
}
