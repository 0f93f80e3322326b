// Sign a customer's identity for Deskwire's widget. Needs Go 1.21 or newer, and nothing else.
//
// CHANNEL_ID=chn_... CHANNEL_SECRET=chs_... go run identify.go user-1 "Ada Lovelace"
//
// Call identify in a route of your site that knows who is signed in, and answer with its result. The secret stays in your backend.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"
)

const lifetime = time.Hour // at most 24 hours are accepted

var encoding = base64.RawURLEncoding

// identify returns the identity of the signed-in user. The profile may have name, email, phone, avatar and attributes.
func identify(channelID, secret, userID string, profile map[string]any) (string, error) {
	claims := map[string]any{}
	for name, value := range profile {
		claims[name] = value
	}
	claims["sub"], claims["aud"], claims["exp"] = userID, channelID, time.Now().Add(lifetime).Unix()
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := encoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encoding.EncodeToString(body)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + encoding.EncodeToString(mac.Sum(nil)), nil
}

func main() {
	profile := map[string]any{"name": os.Args[2]}
	identity, err := identify(os.Getenv("CHANNEL_ID"), os.Getenv("CHANNEL_SECRET"), os.Args[1], profile)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(identity)
}
