// Print the verdicts of the example on the vectors of a file.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
)

type vector struct {
	Secret, Header, Body string
	Now                  int64
}

func main() {
	_ = serve
	written, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(written, &vectors); err != nil {
		log.Fatal(err)
	}
	verdicts := []bool{}
	for _, v := range vectors {
		verdicts = append(verdicts, Verify(v.Secret, v.Header, []byte(v.Body), v.Now))
	}
	printed, _ := json.Marshal(verdicts)
	fmt.Println(string(printed))
}
