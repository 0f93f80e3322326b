// Calls every recorded operation with the generated client: `every URL TOKEN CASSETTE`.
// Prints JSON: for each call and each event its error, or the answer in the client's own JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"unicode"

	client "github.com/GIT_USER_ID/GIT_REPO_ID"
)

type parameter struct {
	Name  string          `json:"name"`
	Place string          `json:"place"`
	Value json.RawMessage `json:"value"`
}

type exchange struct {
	Name       string          `json:"name"`
	Operation  string          `json:"operation"`
	Parameters []parameter     `json:"parameters"`
	HasBody    bool            `json:"has_body"`
	Body       json.RawMessage `json:"body"`
}

type event struct {
	Name  string          `json:"name"`
	Model string          `json:"model"`
	Body  json.RawMessage `json:"body"`
}

type outcome struct {
	Error  string          `json:"error,omitempty"`
	Answer json.RawMessage `json:"answer"`
}

// plain returns a name without case and marks, as the generator changes both.
func plain(name string) string {
	return strings.Map(func(each rune) rune {
		if unicode.IsLetter(each) || unicode.IsDigit(each) {
			return unicode.ToLower(each)
		}
		return -1
	}, name)
}

// methods returns the methods of a value by their plain names.
func methods(value reflect.Value) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	for index := 0; index < value.NumMethod(); index++ {
		found[plain(value.Type().Method(index).Name)] = value.Method(index)
	}
	return found
}

// read returns a value of a type from its JSON.
func read(kind reflect.Type, text json.RawMessage) (reflect.Value, error) {
	found := reflect.New(kind)
	err := json.Unmarshal(text, found.Interface())
	return found.Elem(), err
}

// call makes a request: path parameters are arguments of the method, all others are set on the request that it returns.
func call(method reflect.Value, each exchange) (any, error) {
	arguments := []reflect.Value{reflect.ValueOf(context.Background())}
	for _, given := range each.Parameters {
		if given.Place == "path" {
			value, err := read(method.Type().In(len(arguments)), given.Value)
			if err != nil {
				return nil, err
			}
			arguments = append(arguments, value)
		}
	}
	request := method.Call(arguments)[0]
	settings := each.Parameters
	if each.HasBody {
		settings = append(settings, parameter{Name: "body", Place: "body", Value: each.Body})
	}
	for _, given := range settings {
		if given.Place == "path" {
			continue
		}
		set, known := methods(request)[plain(given.Name)]
		if !known {
			return nil, fmt.Errorf("no parameter %s", given.Name)
		}
		value, err := read(set.Type().In(0), given.Value)
		if err != nil {
			return nil, err
		}
		request = set.Call([]reflect.Value{value})[0]
	}
	results := request.MethodByName("Execute").Call(nil)
	if err := results[len(results)-1]; !err.IsNil() {
		return nil, err.Interface().(error)
	}
	if len(results) < 3 {
		return nil, nil
	}
	return results[0].Interface(), nil
}

// survived returns a model's JSON after it was written, read and written again.
func survived(value any) (json.RawMessage, error) {
	if value == nil {
		return json.RawMessage("null"), nil
	}
	first, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	again, err := read(reflect.TypeOf(value), first)
	if err != nil {
		return nil, fmt.Errorf("its own JSON is refused: %w", err)
	}
	if !reflect.DeepEqual(again.Interface(), value) {
		return nil, fmt.Errorf("it differs after its own JSON")
	}
	return json.Marshal(again.Interface())
}

func done(value any, err error) outcome {
	if err == nil {
		var answer json.RawMessage
		answer, err = survived(value)
		if err == nil {
			return outcome{Answer: answer}
		}
	}
	if refused, ok := err.(*client.GenericOpenAPIError); ok {
		return outcome{Error: refused.Error() + " " + string(refused.Body())}
	}
	return outcome{Error: err.Error()}
}

func main() {
	url, token, cassette := os.Args[1], os.Args[2], os.Args[3]
	text, err := os.ReadFile(cassette)
	if err != nil {
		panic(err)
	}
	var tour struct {
		Exchanges []exchange `json:"exchanges"`
		Events    []event    `json:"events"`
	}
	if err := json.Unmarshal(text, &tour); err != nil {
		panic(err)
	}
	configuration := client.NewConfiguration()
	configuration.Servers = client.ServerConfigurations{{URL: url}}
	configuration.AddDefaultHeader("Authorization", "Bearer "+token)
	apis := reflect.ValueOf(client.NewAPIClient(configuration)).Elem()
	known := map[string]reflect.Value{}
	for index := 0; index < apis.NumField(); index++ {
		if apis.Type().Field(index).IsExported() {
			for name, method := range methods(apis.Field(index)) {
				known[name] = method
			}
		}
	}
	found := map[string]outcome{}
	for _, each := range tour.Exchanges {
		value, err := call(known[plain(each.Operation)], each)
		found[each.Name] = done(value, err)
	}
	for _, each := range tour.Events {
		model := models[each.Model]()
		err := json.Unmarshal(each.Body, model)
		found[each.Name] = done(model, err)
	}
	printed, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(printed))
}
