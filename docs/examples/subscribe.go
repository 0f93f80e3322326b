// Follow every event of a project. Needs Go 1.21 or newer and github.com/gorilla/websocket:
// go mod init follower && go get github.com/gorilla/websocket, then
// BASE=http://127.0.0.1:8080 KEY=sk_... go run subscribe.go [FILE]
// This runs on your server: the server key must never reach a customer.
// In FILE it keeps its place: started again, it goes on behind the last event that it has worked through.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// message is what goes over the websocket in both directions (the Pusher protocol).
type message struct {
	Event   string          `json:"event"`
	Channel string          `json:"channel,omitempty"`
	Data    json.RawMessage `json:"data"`
}

type project struct {
	ID        string `json:"id"`
	StreamKey string `json:"streamKey"`
}

type event struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Sequence json.RawMessage `json:"sequence"`
}

var (
	base, key    = os.Getenv("BASE"), os.Getenv("KEY")
	client       = &http.Client{Timeout: 30 * time.Second}
	errForGood   = errors.New("over for good: a takeover, or a revoked key")
	consumer     = fmt.Sprintf("mirror-%d-%d", os.Getpid(), time.Now().Unix()) // a new one for each start of the process
	resume, file = "auto", ""
	recent       = map[string]bool{} // what was under way when a connection broke comes twice
	order        []string            // the same ids, the oldest first
)

// call sends a request with the server key and reads the JSON that answers it.
func call(method, path string, body, answer any) error {
	written, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, base+path, bytes.NewReader(written))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// unpack reads data, which is JSON in a text towards clients.
func unpack(data json.RawMessage, into any) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		data = json.RawMessage(text)
	}
	return json.Unmarshal(data, into)
}

// follow handles one connection until it ends.
func follow(mine project) error {
	url := "ws" + strings.TrimPrefix(base, "http") + "/app/" + mine.StreamKey + "?protocol=7&client=go&version=1"
	connection, _, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		return err
	}
	defer connection.Close()
	alive := func() { connection.SetReadDeadline(time.Now().Add(3 * time.Minute)) }
	answer := connection.PingHandler() // answers a ping with a pong, which confirms what has arrived
	connection.SetPingHandler(func(data string) error { alive(); return answer(data) })
	for {
		alive()
		var got message
		if err := connection.ReadJSON(&got); err != nil {
			if websocket.IsCloseError(err, 4001, 4007, 4009) {
				return errForGood
			}
			return err
		}
		if err := handle(connection, mine, got); err != nil {
			return err
		}
	}
}

func handle(connection *websocket.Conn, mine project, got message) error {
	switch got.Event {
	case "pusher:connection_established":
		return subscribe(connection, mine, got.Data)
	case "pusher_internal:subscription_succeeded":
		resume = "auto" // from now on the service knows the place
		var text string
		json.Unmarshal(got.Data, &text)
		fmt.Println("subscribed", text) // gap: fetch the conversations again
	case "pusher:subscription_error":
		fmt.Println("refused", string(got.Data))
	case "pusher:ping":
		return connection.WriteJSON(message{Event: "pusher:pong", Data: json.RawMessage("{}")})
	case "pusher:error":
		log.Print(string(got.Data))
	default:
		var each event
		if err := unpack(got.Data, &each); err != nil {
			return err
		}
		return take(each)
	}
	return nil
}

func subscribe(connection *websocket.Conn, mine project, data json.RawMessage) error {
	var established struct {
		SocketID string `json:"socket_id"`
	}
	if err := unpack(data, &established); err != nil {
		return err
	}
	channel := "private-project-" + mine.ID
	fields := map[string]string{
		"socket_id": established.SocketID, "channel_name": channel, "consumerId": consumer, "resume": resume,
	}
	var allowed struct {
		Auth string `json:"auth"`
	}
	if err := call("POST", "/v3/s2s/stream/auth", fields, &allowed); err != nil {
		return err
	}
	written, err := json.Marshal(map[string]string{"channel": channel, "auth": allowed.Auth})
	if err != nil {
		return err
	}
	return connection.WriteJSON(message{Event: "pusher:subscribe", Data: written})
}

// take processes an event, and then keeps its place.
func take(each event) error {
	if recent[each.ID] {
		return nil
	}
	fmt.Println(each.Type, string(each.Sequence), each.ID) // your work
	recent[each.ID], order = true, append(order, each.ID)
	if len(order) > 1000 {
		delete(recent, order[0])
		order = order[1:]
	}
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file+".new", []byte(each.ID), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func main() {
	if len(os.Args) > 1 {
		file = os.Args[1]
		if place, err := os.ReadFile(file); err == nil {
			resume = string(place)
		}
	}
	var mine project
	if err := call("GET", "/v3/s2s/project", nil, &mine); err != nil {
		log.Fatal(err)
	}
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		began := time.Now()
		err := follow(mine)
		if errors.Is(err, errForGood) {
			log.Fatal(err)
		}
		if time.Since(began) > time.Minute {
			pause = time.Second
		}
		log.Print(err)
		time.Sleep(pause/2 + time.Duration(rand.Int63n(int64(pause)))) // not all consumers at once
	}
}
