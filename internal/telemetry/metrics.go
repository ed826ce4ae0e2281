package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of this process. Their labels have few values: never an account, a number, or what somebody said.
var (
	turnSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_turn_seconds",
		Help: "Time from the last sound of a caller's turn to a stage of the reply: endpoint, transcript, first_token, first_sentence, " +
			"first_audio, first_packet.",
		Buckets: []float64{.1, .2, .3, .4, .5, .6, .8, 1, 1.25, 1.5, 2, 3, 5, 10}}, []string{"stage"})
	vendorSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_vendor_first_seconds",
		Help:    "Time from a request to the first of a vendor's answer: the first token of a model, the first sound of a voice.",
		Buckets: []float64{.05, .1, .15, .2, .3, .4, .6, .8, 1, 1.5, 2, 3, 5, 10, 30}}, []string{"part", "vendor"})
	vendorErrors = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "parley_vendor_errors_total",
		Help: "Failures of vendors, by part and kind."}, []string{"part", "vendor", "kind"})
	callEnds = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "parley_call_ends_total",
		Help: "Calls that ended in this process, by type and reason."}, []string{"type", "reason"})
	rtpLoss = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_rtp_loss_ratio",
		Help:    "Share of a call's packets that were lost, by direction: heard is from the far end, said is to it, as it reported.",
		Buckets: []float64{0, .001, .0025, .005, .01, .02, .05, .1, .2, .5}}, []string{"direction"})
	rtpJitter = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_rtp_jitter_seconds",
		Help:    "Jitter of a call's packets (RFC 3550, 6.4.1), by direction.",
		Buckets: []float64{.001, .0025, .005, .01, .02, .03, .05, .1, .2}}, []string{"direction"})
	messageSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_chat_reply_seconds",
		Help:    "Time to answer a message in a chat, by outcome.",
		Buckets: []float64{.1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60}}, []string{"outcome"})
)

// Collectors are the metrics of this package.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{turnSeconds, vendorSeconds, vendorErrors, callEnds, rtpLoss, rtpJitter, messageSeconds}
}

// Stage observes how long after the caller's last sound a stage of the reply was reached.
func Stage(stage string, took time.Duration) {
	turnSeconds.WithLabelValues(stage).Observe(took.Seconds())
}

// VendorFirst observes how long a vendor took to begin its answer.
func VendorFirst(part, vendor string, took time.Duration) {
	vendorSeconds.WithLabelValues(part, vendor).Observe(took.Seconds())
}

// VendorFailed counts a failure of a vendor.
func VendorFailed(part, vendor, kind string) { vendorErrors.WithLabelValues(part, vendor, kind).Inc() }

// CallEnded counts a call that has ended.
func CallEnded(kind, reason string) { callEnds.WithLabelValues(kind, reason).Inc() }

// Media observes the sound of a call in a direction; loss is a share from 0 to 1.
func Media(direction string, loss float64, jitter time.Duration) {
	rtpLoss.WithLabelValues(direction).Observe(loss)
	rtpJitter.WithLabelValues(direction).Observe(jitter.Seconds())
}

// Replied observes how long a message in a chat took to be answered.
func Replied(outcome string, took time.Duration) {
	messageSeconds.WithLabelValues(outcome).Observe(took.Seconds())
}
