package main

import (
	"log"
	"net/http"
	"os"
)

// signedIn finds the user whom the test names.
func signedIn(handler func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user := r.Header.Get("X-User")
		if user == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler(w, r, user)
	}
}

func main() {
	go work()
	http.HandleFunc("/deskwire/webhooks", receive)
	http.HandleFunc("/deskwire/messages", signedIn(Messages))
	http.HandleFunc("/deskwire/auth", signedIn(Auth))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
