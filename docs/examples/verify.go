// Receive Deskwire's webhooks: verify, store, answer, and then work. Needs Go 1.21 or newer, and nothing else.
//
// WEBHOOK_SECRET=whsec_... go run verify.go 9000
// While you rotate the secret, give both: WEBHOOK_SECRET=whsec_new,whsec_old
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	tolerance = 300 // seconds
	bodyMax   = 1 << 20
)

var jobs = make(chan Event, 1000)

var eventID = regexp.MustCompile(`^evt_[0-9A-Za-z]{1,60}$`)

// Event is the part of the envelope that this program looks at.
type Event struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Sequence *int   `json:"sequence"`
}

// Verify tells whether header, the value of Service-Signature, signs body, the raw bytes as they came.
func Verify(secret, header string, body []byte, now int64) bool {
	t, signatures := "", []string{}
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			t = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	at, err := strconv.ParseInt(t, 10, 64)
	if err != nil || strings.Trim(t, "0123456789") != "" || now-at > tolerance || at-now > tolerance {
		return false
	}
	for _, key := range strings.Split(secret, ",") {
		// The key is the whole secret, whsec_ included. It is not base64: do not decode it.
		mac := hmac.New(sha256.New, []byte(strings.TrimSpace(key)))
		mac.Write([]byte(t + "."))
		mac.Write(body)
		expected := []byte(hex.EncodeToString(mac.Sum(nil)))
		for _, each := range signatures {
			if hmac.Equal(expected, []byte(each)) {
				return true
			}
		}
	}
	return false
}

// store keeps an event in a file of its own; false if it is there. A table with a unique column does the same.
func store(inbox, id string, body []byte) (bool, error) {
	if err := os.MkdirAll(inbox, 0o755); err != nil {
		return false, err
	}
	part, err := os.CreateTemp(inbox, "."+id+"-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(part.Name())
	if _, err := part.Write(body); err != nil {
		return false, errors.Join(err, part.Close())
	}
	if err := part.Close(); err != nil {
		return false, err
	}
	err = os.Link(part.Name(), filepath.Join(inbox, id+".json")) // whole, and once
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	var event Event
	if err != nil || !Verify(os.Getenv("WEBHOOK_SECRET"), r.Header.Get("Service-Signature"), body, time.Now().Unix()) ||
		json.Unmarshal(body, &event) != nil || !eventID.MatchString(event.ID) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	inbox := os.Getenv("INBOX")
	if inbox == "" {
		inbox = "deskwire-inbox"
	}
	isNew, err := store(inbox, event.ID, body)
	if err != nil {
		log.Print(err) // not stored: it is sent again
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if isNew {
		jobs <- event
	} else {
		fmt.Println("again", event.ID)
	}
	w.WriteHeader(http.StatusNoContent) // within 5 seconds, whatever the work takes
}

// work does what your business needs, one event after the other. What a crash leaves undone is in the inbox.
func work() {
	for event := range jobs {
		sequence := "null"
		if event.Sequence != nil {
			sequence = strconv.Itoa(*event.Sequence)
		}
		fmt.Println("verified", event.Type, sequence, event.ID)
	}
}

func main() {
	go work()
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: http.HandlerFunc(receive), ReadTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
