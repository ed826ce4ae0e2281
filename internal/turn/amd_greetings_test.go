package turn

// What people and machines say when they answer a call. The rules were made with the first half, and with the voices
// rms and kal16; they are tested with the second half, in other voices.

var people = [2][]string{{
	"Hello?", "Yes?", "Hello, this is Peter.", "Good morning.", "Hi, who is this?", "Smith speaking.", "Hello, hello?",
	"Acme bakery, this is Sarah, how can I help you?",
	"Good afternoon, Doctor Miller's office, how may I help you today?", "Yeah, hi.",
	"Thank you for calling Green Garden, you are speaking with Tom, what can I do for you?",
	"One moment please. Hello?",
	"Hello, Miller.", "Hi Anna, I was about to call you back.", "Can you hear me? Hello?",
	"Reception, good morning.", "Hello, sorry, I was in the other room. Who is it?",
	"Hi, sorry, can I call you back in five minutes?", "Yes hello, Doctor Brown's practice, what is it about?",
	"You've reached the front desk, this is Paul, how can I help?",
	"Hello, I can't talk right now, who is this?", "Good evening, The Blue Lion, do you want to book a table?",
	"Hello? Sorry, I'm busy right now, please call back later.", "Please take me off your list.",
	"I'm not interested, thank you.", "Hello, is this about my order? I have been waiting for your call.",
}, {
	"Hello.", "Yeah?", "This is Martin.", "Jones.", "Hi there.", "Hello, who's calling?",
	"Good afternoon, Linda speaking.", "Hey, what's up?", "Yes, hello, can you hear me?",
	"Baker and Sons, Mary speaking, what can I do for you?",
	"Good morning, Riverside Hotel, this is Daniel at the reception, how may I direct your call?",
	"Thank you for calling City Dental, my name is Laura, how can I help you?",
	"Hold on a second. Okay, now I can talk.", "Hello, this is the Taylor family.",
	"Customer service, you're through to James.", "Hi, I'm driving, can we make it short?",
	"Sorry, who am I talking to?", "Pizza Roma, good evening, for delivery or pick up?",
}}

var machines = [2][]string{{
	"Hi, you've reached John Smith. I'm not available right now, please leave a message after the tone.",
	"You have reached the voicemail of five five five, one two three four. Please leave your message after the beep.",
	"Hello, this is Anna. I can't come to the phone at the moment. Leave your name and number and I will call you back as soon as possible.",
	"The person you are calling is not available. Please record your message at the tone. When you have finished recording, you may hang up.",
	"Thank you for calling Acme Plumbing. Our office is closed for the day. Our opening hours are nine to five, Monday to Friday.",
	"Your call has been forwarded to an automatic voice message system. The number you dialled is not available.",
	"Hey, it's Bob, you know what to do. Wait for the beep and tell me what you want, and I may or may not call you back.",
	"We are sorry, nobody can take your call right now. All of our agents are helping other customers and the office will " +
		"open again tomorrow.",
	"Hi there. You've reached the Miller family. We're out in the garden or at the lake, so leave us a message and have a great day.",
	"Please leave a message.",
	"The number you have dialled is currently switched off. Please try again later.",
	"Hello, you're through to the mailbox of Peter Brown. I'm away from my desk, so please leave your details and I'll get back to you.",
	"Hi, this is Susan. Sorry I missed your call. Leave me a message and I'll ring you back.",
	"Welcome to First Bank. This call may be recorded. For English, press one. For Spanish, press two.",
	"All of our lines are busy at the moment. Please hold, your call is important to us.",
	"You have reached the office of Doctor Lee. We are currently closed. If this is an emergency, please hang up and dial nine one one.",
}, {
	"Hello. No one is able to take your call at the moment. Please leave your name, number and a short message after the tone.",
	"Hi, it's Mark. I can't get to my phone right now, but if you leave a message I'll call you back.",
	"You've reached Linda Jones at Baker and Sons. I am out of the office until Monday. Please send me an email, or leave a message.",
	"The customer you have called is unavailable. Please leave a message after the signal.",
	"Welcome to the voicemail service. The person at this number cannot answer. To leave a message, speak after the tone.",
	"Thank you for calling Riverside Hotel. For reservations, press one. For the reception, press two, or stay on the line.",
	"Hi, you have reached Tom and Julia. We're not at home. Talk to the machine and we'll get back to you as soon as we can.",
	"Sorry, I'm busy. Leave a message.",
	"This is Daniel's phone. I'm probably in a meeting, so leave me a message or text me instead.",
	"Good day. You have reached City Dental outside of our opening hours. We are open from Monday to Thursday, eight to five.",
	"The mobile phone you are calling is switched off or out of range. Please try later.",
	"Your call is being answered by an automated attendant. If you know the extension, you may dial it now.",
}}
