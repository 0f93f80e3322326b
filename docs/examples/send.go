// Send a message to a conversation, once, however often it has to be tried. Needs Go 1.21 or newer, and nothing else.
//
// BASE=http://127.0.0.1:8080 KEY=sk_... go run send.go cnv_... order-1001-shipped "It left us today."
// The second argument is the Idempotency-Key: the id that the message has in your own system.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"time"
)

const attempts = 8

var (
	again  = map[int]bool{409: true, 429: true, 500: true, 502: true, 503: true, 504: true}
	client = &http.Client{Timeout: 30 * time.Second}
)

// Send returns the id of the message as it was stored, or why it was refused.
func Send(conversation, key, text string) (string, error) {
	author := map[string]string{"type": "bot", "name": "Shop"}
	body, err := json.Marshal(map[string]any{"text": text, "author": author})
	if err != nil {
		return "", err
	}
	var reason error
	for attempt := 0; attempt < attempts; attempt++ {
		var wanted string
		var done bool
		var id string
		if id, wanted, done, reason = try(conversation, key, body); done {
			return id, reason
		}
		if attempt < attempts-1 {
			pause, err := strconv.Atoi(wanted)
			if err != nil {
				pause = min(1<<attempt, 30)
			}
			time.Sleep(time.Duration(pause)*time.Second + time.Duration(rand.Int63n(int64(time.Second)))) // not all clients at once
		}
	}
	return "", reason
}

// try sends it once. It tells what the service wants as a pause, and whether that was the last word.
func try(conversation, key string, body []byte) (id, wanted string, done bool, reason error) {
	url := os.Getenv("BASE") + "/v3/s2s/conversations/" + conversation + "/messages"
	request, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return "", "", true, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key) // the same on each attempt
	response, err := client.Do(request)
	if err != nil {
		return "", "", false, err // no answer: it may have been stored, which the key tells the service
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", "", false, err
	}
	wanted = response.Header.Get("Retry-After")
	if response.StatusCode != http.StatusOK {
		last := !again[response.StatusCode] || (response.StatusCode == http.StatusConflict && wanted == "")
		return "", wanted, last, errors.New(string(answer))
	}
	var message struct {
		ID string `json:"id"`
	}
	err = json.Unmarshal(answer, &message)
	return message.ID, "", true, err
}

func main() {
	id, err := Send(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, "not sent:", err)
		os.Exit(1)
	}
	fmt.Println("sent", id)
}
